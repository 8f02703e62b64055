// What is said above a view, or in place of it, while the controller does not answer.
import {heardAgoS, link, now, retryInS, retryNow, standing, state} from '../live/live';
import {count} from '../text/amounts';
import {clock, duration} from '../text/time';
import {html} from './html';
import {StandsBy, StandsByLine} from './stands_by';

// The gRPC code in words.
const CODES: Record<string, string> = {
  UNAVAILABLE: 'it cannot answer now', PERMISSION_DENIED: 'you may not see this',
  RESOURCE_EXHAUSTED: 'you ask too often', NOT_FOUND: 'it does not know this address', UNIMPLEMENTED: 'it is of another version',
  'BAD ANSWER': 'this page does not understand its answer',
};

const Retry = () => html`<span>Trying again ${retryInS.value > 0 ? `in ${retryInS.value} s` : 'now'}.</span>
  <button type="button" class="btn" onClick=${retryNow}>Try now</button>`;

// Why this browser is not let in. It may be the page's server that says so, of `sidingctl page`, and not the controller: what it says is
// all there is to say.
function closedText(): string {
  const {failure} = link.value;
  return failure?.code === 'UNAUTHENTICATED' && failure.message !== '' ? `${failure.message}.` : '';
}

function refusedText(): string {
  const {failure} = link.value, closed = closedText();
  if (failure === undefined || closed !== '') return closed;
  const words = CODES[failure.code];
  return `${failure.code}${words === undefined ? '' : `, ${words}`}${failure.message === '' ? '' : `: ${failure.message}`}.`;
}

export function Notices() {
  const {site, lastSeq} = state.value, is = standing.value, closed = closedText();
  if (site === undefined || is === 'live' || is === 'reading') return null;
  const {active} = link.value.failure ?? {};
  const seen = `What you see is of ${clock(now.value)}, event ${count(lastSeq)}.`;
  return html`<section class="bar bad" aria-label="Notice">
    <b role="alert">${is === 'lost' ? 'The controller is not heard.' : active !== undefined ? 'This controller stands by.' : closed || 'The controller refuses.'}</b>
    ${is === 'refused' && active !== undefined && html`<${StandsByLine} active=${active}/>`}
    <span>${is === 'lost' ? html`Last heard ${duration(heardAgoS.value)} ago.` : closed || active !== undefined ? '' : refusedText()} ${seen}</span><${Retry}/></section>`;
}

// Nothing has ever come.
export function NoData() {
  const {active} = link.value.failure ?? {};
  if (standing.value === 'refused' && active !== undefined) return html`<${StandsBy} active=${active} retry=${html`<${Retry}/>`}/>`;
  return html`<h1>No data from the controller</h1>
    <p class="dim">${standing.value === 'refused' ? refusedText() : 'It cannot be reached.'} Jobs are not affected by that.</p>
    <p class="row"><${Retry}/></p><p class="dim"><code>sidingctl jobs</code> asks the controller without this page.</p>`;
}
