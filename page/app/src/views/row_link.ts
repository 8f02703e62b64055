import {state} from '../live/live';
import {knownJob} from '../live/state';
import {nameOf} from '../model/jobs';
import {Row} from '../model/timeline';
import {html} from '../ui/html';
import {JobLink} from '../ui/parts';

// To a job that makes way, by the name that its plan or the page knows.
export function RowLink({row}: {row: Row}) {
  const job = knownJob(state.value, row.job);
  return html`<${JobLink} id=${row.job} name=${row.step?.jobName || (job && nameOf(job)) || 'job'}/>`;
}
