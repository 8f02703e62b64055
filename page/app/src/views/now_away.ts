// Jobs that are off their nodes, or on their way: since when, for whom, what they wait for.
import {Job} from '../../generated/api';
import {state} from '../live/live';
import {forecastOf} from '../model/back';
import {isAway, sizeOf, userOf, whyText} from '../model/jobs';
import {count, nodesText} from '../text/amounts';
import {html} from '../ui/html';
import {At, FromNow, JobState, LinkOf, Lasting, Panel, RequestLink} from '../ui/parts';
import {jobsAddress} from '../ui/route';
import {lights} from './light';

const MOST = 12;

function Forecast({job}: {job: Job}) {
  const forecast = forecastOf(job);
  if (forecast === undefined) return null;
  return html`<div class="back">${forecast.predictedUs > 0 ? html`<b><${At} us=${forecast.predictedUs}/></b><br/><span class="dim">
    <${FromNow} at=${forecast.predictedUs}/></span>` : html`<b>not known</b>`}</div>`;
}
const whyAway = (job: Job): string => [whyText(job), forecastOf(job)?.because ?? ''].filter(text => text !== '').join('; ');

const Item = ({job}: {job: Job}) => html`<li ...${lights(job.id)}><${Forecast} job=${job}/><div><${LinkOf} job=${job}/>
  <span class="dim"> · ${userOf(job)} · ${nodesText(sizeOf(job))}</span></div>
  <div class="dim"><${JobState} job=${job}/> <${Lasting} from=${job.stateSinceUs}/>${job.madeWayFor !== 0 && html`, for <${RequestLink} id=${job.madeWayFor}/>`}</div>
  ${whyAway(job) !== '' && html`<div class="why">${whyAway(job)}</div>`}</li>`;

export function AwayPanel() {
  const away = [...state.value.jobs.values()].filter(isAway).sort((a, b) => a.stateSinceUs - b.stateSinceUs);
  return html`<${Panel} title=${`Away from their nodes: ${count(away.length)}`} kind="p-away" right=${away.some(job => forecastOf(job) !== undefined) && 'nodes again'}>
    ${away.length === 0 ? html`<p class="empty">No job is away from its nodes.</p>` : html`<ul class="away">${away.slice(0, MOST).map(job => html`<${Item} key=${job.id} job=${job}/>`)}</ul>`}
    ${away.length > MOST && html`<p class="note"><a href=${jobsAddress('is:away')}>All ${count(away.length)} of them</a></p>`}<//>`;
}
