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
const NAMES: readonly (readonly [Bar, string])[] = [
  ['run', 'runs'], ['leave', 'leaves its nodes'], ['commit', 'image is committed'], ['frozen', 'frozen'], ['parked', 'parked'],
  ['restore', 'restored or thawed'], ['wait', 'request waits'], ['start', 'is started'], ['od', 'request runs'],
];
const MARKS = {free: 'M-5-4H5L0 5Z', durable: 'M0-6 6 0 0 6-6 0Z', predicted: 'M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5Z'};

const MARK_NAMES: readonly (readonly [keyof typeof MARKS, string])[] = [
  ['free', 'nodes free'], ['durable', 'image whole'], ['predicted', 'nodes free, predicted'],
];

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
  const place = (us: number): string => `${placeOn(axis, us)}%`;
  const vertical = (us: number, kind: string) =>
    us > 0 && isOn(axis, us) && html`<line class=${kind} x1=${place(us)} x2=${place(us)} y1="0" y2="44"/>`;
  const mark = (us: number | undefined, y: number, kind: keyof typeof MARKS) =>
    us !== undefined && us > 0 && isOn(axis, us) && html`<${Mark} x=${placeOn(axis, us)} y=${y} kind=${kind}/>`;
  return html`<svg class="gx" aria-hidden="true">${ticksOf(axis, request.submittedUs).map(tick => vertical(tick.us, 'g'))}
    ${row.segments.map(segment => html`<${BarOf} segment=${segment} axis=${axis}/>`)}
    ${vertical(line.grantedUs, 'v-grant')}${vertical(deadlineOf(request), 'v-due')}${request.endedUs === 0 && vertical(now.value, 'v-now')}
    ${mark(row.predictedFreeUs, 6, 'predicted')}${mark(row.move?.freeUs, 11, 'free')}${mark(row.move?.durableUs, 22, 'durable')}</svg>`;
}

function Head({axis, request, line}: {axis: Axis; request: Job; line: TimeLine}) {
  // What is near the right edge ends there.
  const anchor = (us: number, edge: number): string => (placeOn(axis, us) > edge ? 'end' : 'middle');
  const strong = (us: number, what: string) => us > 0 && isOn(axis, us) && html`<text class="strong" x=${`${placeOn(axis, us)}%`} y="11"
    text-anchor=${anchor(us, 80)}>${what} ${duration((us - request.submittedUs) / 1e6)}</text>`;
  return html`<svg class="gx" aria-hidden="true">
    ${ticksOf(axis, request.submittedUs).map(tick => html`<text x=${`${placeOn(axis, tick.us)}%`} y="32" text-anchor=${anchor(tick.us, 94)}>${tick.text}</text>`)}
    ${strong(line.grantedUs, 'granted')}${strong(deadlineOf(request), 'deadline')}</svg>`;
}

function Legend({rows}: {rows: readonly Row[]}) {
  const there = new Set(rows.flatMap(row => row.segments.map(segment => segment.kind)));
  const sample = (kind: Bar) => (LINES.has(kind) ? html`<line class=${`s-${kind}`} x1="0" x2="26" y1="6" y2="6"/>`
    : html`<rect class=${`s-${kind}`} width="26" height="12"/>`);
  const entry = (content: unknown, text: string) => html`<span key=${text}><svg aria-hidden="true">${content}</svg>${text}</span>`;
  return html`<div class="glegend">${NAMES.filter(([kind]) => there.has(kind)).map(([kind, text]) => entry(sample(kind), text))}
    ${MARK_NAMES.map(([kind, text]) => entry(html`<${Mark} x=${50} y=${6} kind=${kind}/>`, text))}</div>`;
}

// What is written below a row's name.
function smallText({isRequest, job, step, move}: Row, request: Job): string {
  if (isRequest) return `request ${job}, ${nodesText(sizeOf(request))}`;
  return [step && nodesText(step.nodes.length), move?.way ?? (step && methodText(step))].filter(Boolean).join(', ');
}

// Patterns that bars are filled with, so that none is told by its hue alone.
export const Patterns = () => html`<svg width="0" height="0" class="defs" aria-hidden="true"><defs>
  <pattern id="h-leave" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <rect width="6" height="6" class="p-ground"/><rect width="3" height="6" class="p-leave"/></pattern>
  <pattern id="h-frozen" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" class="p-ground"/>
    <rect width="2.5" height="6" class="p-away"/></pattern>
  <pattern id="h-back" width="6" height="5" patternUnits="userSpaceOnUse"><rect width="6" height="5" class="p-ground"/>
    <rect width="6" height="2" class="p-back"/></pattern>
  <pattern id="h-od" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="6" height="6" class="p-ground"/>
    <rect width="3" height="6" class="p-od"/></pattern>
  <pattern id="h-failure" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" class="p-ground"/>
    <path d="M0 0 6 6M6 0 0 6" class="p-failure"/></pattern></defs></svg>`;

export function TimeLinePanel({line, request}: {line: TimeLine; request: Job}) {
  const [pane, setPane] = useState('out'), [all, setAll] = useState(false), {back} = line;
  const rows = all ? line.rows : line.rows.slice(0, MOST + 1), folded = line.rows.length - rows.length;
  const tabs = back && html`<span class="panetabs">
    <${Segmented} label="Part of the time line" options=${[['out', 'Way out'], ['back', 'Way back']]} value=${pane} change=${setPane}/></span>`;
  const grid = (first: unknown, of: (axis: Axis) => unknown, kind: string) => html`<div class=${`grow ${kind}`}><div>${first}</div>
    <div class="pane a">${of(line.out)}</div>${back && html`<div class="pane b">${of(back)}</div>`}</div>`;
  return html`<${Panel} title="Time line" right=${html`${tabs}<span>from submission at <${At} us=${request.submittedUs} tenths=${true}/></span>`}>
    <${Patterns}/>
    <div class=${`gantt${back ? ' two' : ''}`} data-pane=${pane}>
    ${grid(html`<span class="dim">the way out${back ? ', the way back' : ''}</span>`, axis => html`<${Head} axis=${axis} request=${request} line=${line}/>`, 'headrow')}
    ${rows.map(row => grid(html`${row.isRequest ? html`<b>${nameOf(request)}</b>` : html`<${RowLink} row=${row}/>`}<small>${smallText(row, request)}</small>`,
                           axis => html`<${Pane} row=${row} axis=${axis} request=${request} line=${line}/>`, ''))}
    <${Legend} rows=${rows}/>${folded > 0 && html`<p class="note">
      <button type="button" class="btn" onClick=${() => setAll(true)}>Show the other ${folded}</button></p>`}</div><//>`;
}
