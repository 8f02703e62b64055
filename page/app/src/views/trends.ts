// Trends: are deadlines met, what is lost, are predictions right, is storage slow.
import {useComputed} from '@preact/signals';
import {TrendsResponse} from '../../generated/api';
import {ApiError} from '../api/client';
import {useTrends} from '../live/ask';
import {now, standing} from '../live/live';
import {HOUR_US, RANGES, Range, rangeNamed, trendsOf} from '../model/trends';
import {html} from '../ui/html';
import {Patterns} from './timeline';
import {DeadlinesPanel, LostPanel, PredictionsPanel, StoragePanel} from './trends_panels';

const Ranges = ({chosen}: {chosen: Range}) => html`<nav class="seg" aria-label="Range">${RANGES.map(range => html`<a key=${range.query} href=${`#/trends${range.query && `?${range.query}`}`}
  aria-current=${range === chosen ? 'true' : undefined}>${range.text}</a>`)}</nav>`;

const reason = ({code, message}: ApiError): string => (['NOT_FOUND', 'UNIMPLEMENTED'].includes(code) ? 'this controller does not tell of them' : `${code}${message && `: ${message}`}`);

function Charts({answer, range}: {answer: TrendsResponse; range: Range}) {
  // Not each second.
  const hour = useComputed(() => Math.floor(now.value / HOUR_US)), trends = trendsOf(answer, range, hour.value * HOUR_US);
  return html`<${Patterns}/><div class="charts"><${DeadlinesPanel} trends=${trends}/><${LostPanel} trends=${trends}/><${PredictionsPanel} trends=${trends}/><${StoragePanel} trends=${trends}/></div>`;
}

export function TrendsView({query}: {id: string; query: string}) {
  const {answer, error} = useTrends(), range = rangeNamed(query);
  return html`<div class="titleline trendsline"><div><h1>Trends</h1><p class="dim">What happened, by hours and days of UTC. The one under way is counted as far as it has come.</p></div><${Ranges} chosen=${range}/></div>
    ${error !== undefined && html`<p class="bar warn inset">Trends could not be read${answer === undefined ? '' : ' again'}: ${reason(error)}.</p>`}
    ${answer !== undefined ? html`<${Charts} answer=${answer} range=${range}/>`
      : error === undefined && html`<p class="dim" role="status">${standing.value === 'live' ? 'Reading what happened.' : 'It is asked when the controller is heard again.'}</p>`}`;
}
