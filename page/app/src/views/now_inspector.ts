// What there is to know of one node. Its height does not change with the node.
import {Job, Node, Rate} from '../../generated/api';
import {state} from '../live/live';
import {takesOrders} from '../live/orders';
import {actionsOnNode} from '../model/actions';
import {FACES, Face} from '../model/nodes';
import {userOf} from '../model/jobs';
import {bytes} from '../text/amounts';
import {html} from '../ui/html';
import {Actions} from '../ui/order';
import {FromNow, JobState, LinkOf, Swatch} from '../ui/parts';

const rate = (of: Rate | undefined): string => (of !== undefined && of.bytesPerSecond > 0 ? `${bytes(of.bytesPerSecond)}/s` : '');

function problems(node: Node): string {
  return [node.fault, node.criuProblem, node.gpuProblem, node.fenceProblem].filter(text => text !== '').join('; ');
}

function figures(node: Node): [string, unknown][] {
  const {used, capacity} = node, dump = rate(node.shared?.dump), restore = rate(node.shared?.restore);
  const list: [string, unknown][] = [['Slots', `${used?.slots ?? 0} of ${capacity?.slots ?? 0}`]];
  if ((capacity?.gpus ?? 0) > 0) list.push(['GPUs', `${used?.gpus ?? 0} of ${capacity?.gpus ?? 0}`]);
  list.push(['RAM free', `${bytes(node.ramAvailable)}${capacity !== undefined && capacity.memory > 0 ? ` of ${bytes(capacity.memory)}` : ''}`], ['Disk free', bytes(node.localDiskFree)]);
  if (dump !== '' || restore !== '') list.push(['Dump / restore, shared', `${dump || 'not measured'} / ${restore || 'not measured'}`]);
  if (node.lastHeardUs > 0) list.push(['Last heard', html`<${FromNow} at=${node.lastHeardUs}/>`]);
  return list;
}

// kept: not only pointed at, so that its orders can be reached.
interface Props { node: Node | undefined; face: Face | undefined; jobs: Job[]; kept: boolean }
export function NodeInspector({node, face, jobs, kept}: Props) {
  if (node === undefined || face === undefined) {
    return html`<div class="inspect">
      <p class="dim">Point at a node to see what runs on it, or at a request or a job to see its nodes. Arrow keys move between nodes; a click keeps one here.</p></div>`;
  }
  return html`<div class="inspect" aria-live="polite"><div><b class="mono">${node.name}</b><br/><span class="chip">
    <${Swatch} kind=${face}/>${FACES[face]}</span>${kept && takesOrders() && html`<${Actions} of=${actionsOnNode(node, state.value.site)} label="Orders"/>`}</div>
    <div><dl>${figures(node).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
      <p>${jobs.length === 0 ? html`<span class="dim">No job.</span>` : jobs.map((job, i) => html`${i > 0 && ' · '}<${LinkOf} job=${job}/> <span class="dim">${userOf(job)}, </span><${JobState} job=${job}/>`)}</p>
      ${problems(node) !== '' && html`<p class="bad-text">${problems(node)}</p>`}</div></div>`;
}
