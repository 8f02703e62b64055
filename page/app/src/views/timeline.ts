// The time line as a picture. The table below it repeats all numbers.
import {useState} from 'preact/hooks';
import {Job} from '../../generated/api';
import {now} from '../live/live';
import {deadlineOf, nameOf, sizeOf} from '../model/jobs';
import {methodText} from '../model/plans';
import {Axis, Bar, Row, Segment, TimeLine, isOn, placeOn, ticksOf} from '../model/timeline';
import {nodesText} from '../text/amounts';
import {duration} from '../text/time';
import {html} from '../ui/html';
import {RowLink} from './row_link';
import {At, Panel, Segmented} from '../ui/parts';

const MOST = 12;  // rows that are not folded
const LINES = new Set<Bar>(['wait', 'parked']);
const NAMES: readonly (readonly [Bar, string])[] = [['run', 'runs'], ['leave', 'leaves its nodes'], ['commit', 'image is committed'], ['frozen', 'frozen'], ['parked', 'parked'], ['restore', 'restored or thawed'], ['wait', 'request waits'], ['start', 'is started'], ['od', 'request runs']];
const MARKS = {free: 'M-5-4H5L0 5Z', durable: 'M0-6 6 0 0 6-6 0Z', predicted: 'M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5Z'};

// Keeps its size while its place is a percentage.
const Mark = ({x, y, kind}: {x: number; y: number; kind: keyof typeof MARKS}) =>
  html`<svg x=${`${x}%`} y=${y} overflow="visible"><path class=${`mk-${kind}`} d=${MARKS[kind]}/></svg>`;

function BarOf({segment, axis}: {segment: Segment; axis: Axis}) {
  if (segment.toUs < axis.fromUs || segment.fromUs > axis.toUs) return null;
  const x = placeOn(axis, segment.fromUs), end = placeOn(axis, segment.toUs);
  if (LINES.has(segment.kind)) return html`<line class=${`s-${segment.kind}`} x1=${`${x}%`} x2=${`${end}%`} y1="22" y2="22"/>`;
  return html`<rect class=${`s-${segment.kind}`} x=${`${x}%`} width=${`${Math.max(0.15, end - x)}%`} y="13" height="18"/>`;
}

interface PaneProps { row: Row; axis: Axis; request: Job; line: TimeLine }
function Pane({row, axis, request, line}: PaneProps) {
  const vertical = (us: number, kind: string) => (us > 0 && isOn(axis, us) ? html`<line class=${kind} x1=${`${placeOn(axis, us)}%`} x2=${`${placeOn(axis, us)}%`} y1="0" y2="44"/>` : null);
  const mark = (us: number | undefined, y: number, kind: keyof typeof MARKS) => (us !== undefined && us > 0 && isOn(axis, us) ? html`<${Mark} x=${placeOn(axis, us)} y=${y} kind=${kind}/>` : null);
  return html`<svg class="gx" aria-hidden="true">${ticksOf(axis, request.submittedUs).map(tick => vertical(tick.us, 'g'))}
    ${row.segments.map(segment => html`<${BarOf} segment=${segment} axis=${axis}/>`)}
    ${vertical(line.grantedUs, 'v-grant')}${vertical(deadlineOf(request), 'v-due')}${request.endedUs === 0 && vertical(now.value, 'v-now')}
    ${mark(row.predictedFreeUs, 6, 'predicted')}${mark(row.move?.freeUs, 11, 'free')}${mark(row.move?.durableUs, 22, 'durable')}</svg>`;
}

function Head({axis, request, line}: {axis: Axis; request: Job; line: TimeLine}) {
  const strong = (us: number, text: string) => (us > 0 && isOn(axis, us) ? html`<text class="strong" x=${`${placeOn(axis, us)}%`} y="11" text-anchor=${placeOn(axis, us) > 80 ? 'end' : 'middle'}>${text}</text>` : null);
  const after = (us: number) => duration((us - request.submittedUs) / 1e6);
  return html`<svg class="gx" aria-hidden="true">${ticksOf(axis, request.submittedUs).map(tick => html`<text x=${`${placeOn(axis, tick.us)}%`} y="32" text-anchor=${placeOn(axis, tick.us) > 94 ? 'end' : 'middle'}>${tick.text}</text>`)}
    ${strong(line.grantedUs, `granted ${after(line.grantedUs)}`)}${strong(deadlineOf(request), `deadline ${after(deadlineOf(request))}`)}</svg>`;
}

const Legend = ({rows}: {rows: readonly Row[]}) => {
  const there = new Set(rows.flatMap(row => row.segments.map(segment => segment.kind)));
  return html`<div class="glegend">${NAMES.filter(([kind]) => there.has(kind)).map(([kind, text]) => html`<span key=${kind}><svg aria-hidden="true">${LINES.has(kind) ? html`<line class=${`s-${kind}`} x1="0" x2="26" y1="6" y2="6"/>` : html`<rect class=${`s-${kind}`} width="26" height="12"/>`}</svg>${text}</span>`)}
    ${([['free', 'nodes free'], ['durable', 'image whole'], ['predicted', 'nodes free, predicted']] as const).map(([kind, text]) => html`<span key=${kind}><svg aria-hidden="true"><${Mark} x=${50} y=${6} kind=${kind}/></svg>${text}</span>`)}</div>`;
};

// Patterns that the bars are filled with, so that none is told by its hue alone.
const Patterns = () => html`<svg width="0" height="0" class="defs" aria-hidden="true"><defs>
  <pattern id="h-leave" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" class="p-ground"/><rect width="3" height="6" class="p-leave"/></pattern>
  <pattern id="h-frozen" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" class="p-ground"/><rect width="2.5" height="6" class="p-away"/></pattern>
  <pattern id="h-back" width="6" height="5" patternUnits="userSpaceOnUse"><rect width="6" height="5" class="p-ground"/><rect width="6" height="2" class="p-back"/></pattern>
  <pattern id="h-od" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="6" height="6" class="p-ground"/><rect width="3" height="6" class="p-od"/></pattern></defs></svg>`;

export function TimeLinePanel({line, request}: {line: TimeLine; request: Job}) {
  const [pane, setPane] = useState('out'), [all, setAll] = useState(false), {back} = line;
  const rows = all ? line.rows : line.rows.slice(0, MOST + 1), folded = line.rows.length - rows.length;
  const tabs = back && html`<span class="panetabs"><${Segmented} label="Part of the time line" options=${[['out', 'Way out'], ['back', 'Way back']]} value=${pane} change=${setPane}/></span>`;
  const grid = (first: unknown, of: (axis: Axis) => unknown, kind: string) => html`<div class=${`grow ${kind}`}><div>${first}</div><div class="pane a">${of(line.out)}</div>${back && html`<div class="pane b">${of(back)}</div>`}</div>`;
  const small = (row: Row) => (row.isRequest ? `request ${row.job}, ${nodesText(sizeOf(request))}` : [row.step && nodesText(row.step.nodes.length), row.move?.way ?? (row.step && methodText(row.step))].filter(Boolean).join(', '));
  return html`<${Panel} title="Time line" right=${html`${tabs}<span>from submission at <${At} us=${request.submittedUs} tenths=${true}/></span>`}><${Patterns}/>
    <div class=${`gantt${back ? ' two' : ''}`} data-pane=${pane}>
    ${grid(html`<span class="dim">the way out${back ? ', the way back' : ''}</span>`, axis => html`<${Head} axis=${axis} request=${request} line=${line}/>`, 'headrow')}
    ${rows.map(row => grid(html`${row.isRequest ? html`<b>${nameOf(request)}</b>` : html`<${RowLink} row=${row}/>`}<small>${small(row)}</small>`, axis => html`<${Pane} row=${row} axis=${axis} request=${request} line=${line}/>`, ''))}
    <${Legend} rows=${rows}/>${folded > 0 && html`<p class="note"><button type="button" class="btn" onClick=${() => setAll(true)}>Show the other ${folded}</button></p>`}</div><//>`;
}
