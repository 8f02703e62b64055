// The list of jobs: counts by state first, a filter, and rows in sight alone.
import {useEffect, useRef, useState} from 'preact/hooks';
import {Job} from '../../generated/api';
import {loadEnded, state} from '../live/live';
import {areJobsHidden} from '../live/state';
import {parseFilter, toggleState} from '../model/filter';
import {countByState, phaseOf, sizeOf, userOf, whyText} from '../model/jobs';
import {count, loss, names} from '../text/amounts';
import {html} from '../ui/html';
import {narrow} from '../ui/narrow';
import {JobState, LinkOf, Lasting, Panel, Swatch, swatchOf} from '../ui/parts';
import {replaceQuery} from '../ui/route';
import {VirtualTable} from '../ui/virtual';
import {HiddenJobs} from './hidden';

const ORDER = ['leaving', 'returning', 'frozen', 'parked', 'runs', 'waits', 'ended'];
const COLUMNS = ['Job', 'User', 'Nodes', 'State', 'Since', 'Preempted', 'Lost', 'Where, or why not'];

// Those on their way first, then by number, the newest first.
export function inOrder(jobs: Iterable<Job>): Job[] {
  return [...jobs].sort((a, b) => ORDER.indexOf(phaseOf(a.state)) - ORDER.indexOf(phaseOf(b.state)) || b.id - a.id);
}

// Rows keep their places while the list is pointed at or focused; what is in them goes on.
function useSteadyOrder(jobs: Job[]): [Job[], object] {
  const [held, setHeld] = useState(false), order = useRef<number[]>([]);
  if (!held) order.current = jobs.map(job => job.id);
  const rank = new Map(order.current.map((id, i) => [id, i]));
  const shown = held ? [...jobs].sort((a, b) => (rank.get(a.id) ?? Infinity) - (rank.get(b.id) ?? Infinity) || b.id - a.id) : jobs;
  const hold = () => setHeld(true), release = () => setHeld(false);
  return [shown, {onMouseEnter: hold, onMouseLeave: release, onFocusIn: hold, onFocusOut: release}];
}

const where = (job: Job): string => whyText(job) || names(job.nodes);
const cell = (kind: string, content: unknown) => html`<div role="cell" class=${kind}>${content}</div>`;
const Row = (job: Job) => html`${cell('k1', html`<${LinkOf} job=${job}/>`)}${cell('k3', userOf(job))}${cell('r', sizeOf(job))}${cell('k2', html`<${JobState} job=${job}/>`)}
  ${cell('k4', html`<${Lasting} from=${job.stateSinceUs}/>`)}${cell('r', job.preemptions || '')}${cell('r', job.lostNodeSeconds > 0 ? loss(job.lostNodeSeconds) : '')}
  ${cell('dim', html`<span title=${where(job)}>${where(job)}</span>`)}`;
const Header = () => html`<div role="rowgroup"><div class="vhead" role="row" aria-rowindex="1">${COLUMNS.map((text, i) =>
  html`<div key=${text} role="columnheader" class=${[2, 5, 6].includes(i) ? 'r' : ''}>${text}</div>`)}</div></div>`;

interface CountsProps { counts: Map<string, number>; filter: string; toggle: (state: string) => void }
const Counts = ({counts, filter, toggle}: CountsProps) => html`<div class="legend" role="group" aria-label="Filter by state">${[...counts].map(([each, n]) =>
  html`<button key=${each} type="button" aria-pressed=${String(filter.split(/\s+/).includes(`state:${each}`))} onClick=${() => toggle(each)}>
    <${Swatch} kind=${swatchOf({state: each})}/>${each} <b>${count(n)}</b></button>`)}</div>`;

export function JobsView({query}: {id: string; query: string}) {
  const {jobs, ended} = state.value, filter = parseFilter(query), all = [...jobs.values(), ...(filter.wantsEnded ? ended?.values() ?? [] : [])];
  useEffect(() => { if (filter.wantsEnded) loadEnded().catch(() => undefined); }, [filter.wantsEnded]);
  const [shown, steady] = useSteadyOrder(inOrder(all.filter(filter.test)));
  const counts = countByState([...jobs.values(), ...(ended?.values() ?? [])]);
  const reading = filter.wantsEnded && ended === undefined;
  if (areJobsHidden(state.value) && all.length === 0) return html`<${HiddenJobs}/>`;
  return html`<h1>Jobs</h1>
    <${Panel} title=${`${count(shown.length)} of ${count(all.length)} jobs`} right=${ended === undefined ? html`<button type="button" class="ghost" onClick=${() => void loadEnded().catch(() => undefined)}>Count ended ones too</button>` : undefined}>
    <${Counts} counts=${counts} filter=${query} toggle=${(each: string) => replaceQuery(toggleState(query, each))}/>
    <div class="filters"><input class="find" type="search" aria-label="Filter" placeholder="user:ada state:parked, or a name" value=${query} spellcheck=${false} autocomplete="off"
      aria-describedby="filter-problem" onInput=${(event: InputEvent) => replaceQuery((event.target as HTMLInputElement).value)}/>
      <span id="filter-problem" class=${filter.problem ? 'bad-text' : 'dim'} role="status">${filter.problem || 'user:, state:, node:, is:away, is:on-demand, and words'}</span></div>
    ${shown.length === 0 ? html`<p class="empty">${reading ? 'Reading the jobs that have ended.' : all.length === 0 ? 'There are no jobs.' : 'No job is like this.'}</p>`
      : html`<div ...${steady}>
        <${VirtualTable} label="Jobs" items=${shown} rowHeight=${narrow.value ? 56 : 34} row=${Row} header=${html`<${Header}/>`} idOf=${(job: Job) => job.id}/></div>`}<//>`;
}
