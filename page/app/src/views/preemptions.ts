// Requests with a deadline, the newest first: met, missed, refused, or still ahead.
import {useEffect} from 'preact/hooks';
import {Job} from '../../generated/api';
import {loadEnded, state} from '../live/live';
import {areJobsHidden} from '../live/state';
import {Outcome, outcomeOf} from '../model/outcome';
import {deadlineOf, isOnDemand, sizeOf, userOf} from '../model/jobs';
import {count} from '../text/amounts';
import {html} from '../ui/html';
import {At, JobState, LinkOf, Panel, Table} from '../ui/parts';
import {HiddenJobs} from './hidden';

const MOST = 200;

function Row({job}: {job: Job}) {
  const {kind, text} = outcomeOf(job);
  return html`<tr class=${kind === 'missed' ? 'late' : ''}><td><${LinkOf} job=${job}/></td><td class="e">${userOf(job)}</td>
    <td class="r" data-l="nodes">${sizeOf(job)}</td>
    <td class="num e"><${At} us=${job.submittedUs}/></td><td data-l="deadline">${deadlineOf(job) > 0 && html`<${At} us=${deadlineOf(job)}/>`}</td>
      <td class="e"><${JobState} job=${job}/></td>
    <td class="full">${kind === 'missed' ? html`<span class="margin">${text}</span>` : text}</td></tr>`;
}

export function PreemptionsView() {
  const {jobs, ended} = state.value;
  useEffect(() => { loadEnded().catch(() => undefined); }, []);
  const requests = [...jobs.values(), ...(ended?.values() ?? [])].filter(isOnDemand).sort((a, b) => b.id - a.id);
  const tally = (kind: Outcome['kind']) => requests.filter(job => outcomeOf(job).kind === kind).length;
  const right = `${tally('met')} met, ${tally('missed')} missed, ${tally('refused')} refused, ${tally('ahead')} ahead`;
  if (areJobsHidden(state.value) && requests.length === 0) return html`<${HiddenJobs}/>`;
  return html`<h1>Preemptions</h1><p class="dim lead">Requests with a deadline, the newest first. Each leads to who made way for it, and why.</p>
    <${Panel} title=${`Requests that the controller knows: ${count(requests.length)}`} right=${ended !== undefined && right}>
    ${requests.length === 0 ? html`<p class="empty">${ended === undefined ? 'Reading the requests.' : 'Nobody has asked for nodes by a time.'}</p>`
      : html`<${Table} caption="Requests" columns=${['Request', 'User', ['Nodes', 'r'], 'Asked', 'Deadline', 'State', 'Result']}>${requests.slice(0, MOST).map(job => html`<${Row} key=${job.id} job=${job}/>`)}<//>`}
    ${requests.length > MOST && html`<p class="note">The newest ${MOST} of ${count(requests.length)}; Find leads to the others.</p>`}<//>`;
}
