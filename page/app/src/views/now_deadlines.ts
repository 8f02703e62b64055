// Requests with a deadline ahead, on a logarithmic axis of the time from now.
import {now} from '../live/live';
import {Request} from '../model/verdict';
import {sizeOf, userOf, whyText} from '../model/jobs';
import {count, nodesText, plural} from '../text/amounts';
import {clock, duration} from '../text/time';
import {html} from '../ui/html';
import {At, FromNow, LinkOf, Panel, Table} from '../ui/parts';
import {lights} from './light';

const FROM_S = 2, TO_S = 3600;
const TICKS: readonly (readonly [number, string])[] = [[5, '5 s'], [15, '15 s'], [60, '1 min'], [300, '5 min'], [900, '15 min'], [3600, '1 h']];

// In per cent of the axis.
export const onAxis = (seconds: number): number =>
  Math.max(0, Math.min(100, (100 * Math.log(Math.max(FROM_S, seconds) / FROM_S)) / Math.log(TO_S / FROM_S)));

function Axis({request}: {request: Request}) {
  const {startUs, dueUs, late} = request, at = (us: number) => onAxis((us - now.value) / 1e6);
  const due = at(dueUs), start = startUs > 0 ? at(startUs) : undefined;
  const label = `${startUs > 0 ? `predicted ${clock(startUs)}, ` : ''}deadline ${clock(dueUs)}`;
  return html`<svg class="axis" role="img" aria-label=${label}>
    ${TICKS.map(([s]) => html`<line class="g" x1=${`${onAxis(s)}%`} x2=${`${onAxis(s)}%`} y1="-6" y2="32"/>`)}
    ${start !== undefined && html`<line class="m-wait" x1="0" x2=${`${start}%`} y1="13" y2="13"/>
      <rect class=${late ? 'm-bad' : 'm-ok'} x=${`${Math.min(start, due)}%`} width=${`${Math.abs(due - start)}%`} y="6" height="14"/>
      <circle class="mk-predicted" cx=${`${start}%`} cy="13" r="5"/>`}
    <line class="m-due" x1=${`${due}%`} x2=${`${due}%`} y1="2" y2="24"/></svg>`;
}

const AxisHead = () => html`<svg class="axis head" aria-hidden="true"><text x="0" y="12">now</text>
  ${TICKS.map(([s, text]) => html`<text class=${s === 5 || s === 900 ? 'fine' : ''} x=${`${onAxis(s)}%`} y="12" text-anchor=${s === TO_S ? 'end' : 'middle'}>${text}</text>`)}</svg>`;

function stateText({job, plan}: Request): string {
  if (plan !== undefined && !plan.feasible) return `${plan.queued ? 'queued' : 'refused'}: ${plan.refusal}`;
  const {victims = 0, victimsAway = 0} = plan ?? {};
  const way = victims === 0 ? '' : `${count(victimsAway)} of ${plural(victims, 'job')} ${victims === 1 ? 'has' : 'have'} made way`;
  return [[job.state, whyText(job)].filter(text => text !== '').join(': '), way].filter(text => text !== '').join('; ');
}

const Row = ({request}: {request: Request}) => html`<tr class=${request.late ? 'late' : ''} ...${lights(request.job.id)}>
  <td class="c1"><${LinkOf} job=${request.job}/></td><td class="c2 dim">${userOf(request.job)}, ${nodesText(sizeOf(request.job))}</td>
    <td class="c3">${stateText(request)}</td>
  <td class="c4"><span class="ponly dim">due </span><${At} us=${request.dueUs}/> <span class="dim"><${FromNow} at=${request.dueUs}/></span></td>
  <td class="c5 num">${request.startUs > 0 && html`<span class="ponly dim">starts </span>${clock(request.startUs, true)}`}</td>
  <td class="c6 r">${request.marginS !== undefined && html`<span class="ponly dim">margin </span>
    <span class="margin">${duration(request.marginS)}</span>`}</td>
  <td class="w full"><${Axis} request=${request}/></td></tr>`;

const KEYS = html`<span class="key"><svg aria-hidden="true"><circle class="mk-predicted" cx="11" cy="5" r="5"/></svg>predicted start</span>
  <span class="key"><svg aria-hidden="true"><rect class="m-ok" width="22" height="10"/></svg>margin</span>
  <span class="key"><svg aria-hidden="true"><line class="m-due" x1="11" x2="11" y1="-2" y2="12"/></svg>deadline</span>`;

export function DeadlinesPanel({requests}: {requests: readonly Request[]}) {
  return html`<${Panel} title=${`Requests with a deadline: ${requests.length}`} right=${KEYS}>
    <${Table} kind="stack reqs" caption="Requests with a deadline ahead" columns=${['Request', 'User, nodes', 'State', 'Deadline', 'Predicted start', ['Margin', 'r'], html`<div><span class="vh">On a time axis</span><${AxisHead}/></div>`]}>
      ${requests.map(request => html`<${Row} key=${request.job.id} request=${request}/>`)}<//><//>`;
}
