// A chart by hour or by day: what it comes to, the picture, and the same numbers as a table.
import {useState} from 'preact/hooks';
import {Trend} from '../../generated/api';
import {Part, Scale, blocksOf} from '../model/chart';
import {placeOn} from '../model/timeline';
import {Trends, kindText, periodText, runsOf} from '../model/trends';
import {Child, html} from '../ui/html';
import {Table} from '../ui/parts';

export const TALL = 128;                // pixels
const TOP = 8, BELOW = 22;
const GAP = 0.1;                        // beside a bar, of its period

interface ChartProps {
  name: string;
  figure: string;                 // what it comes to
  trends: Trends;
  scale: Scale;
  textOf: (of: Trend) => string;  // '': it has nothing of this
  partsOf?: (of: Trend) => readonly Part[];
  tall?: number;
  children?: Child;               // over it
}
export function Chart({name, figure, trends, scale, textOf, partsOf = () => [], tall = TALL, children}: ChartProps) {
  const {axis, range, periods} = trends, x = (us: number): number => placeOn(axis, us), y = (share: number): number => TOP + tall * (1 - share), height = TOP + tall + BELOW;
  const anchor = (us: number): string => (x(us) < 4 ? 'start' : x(us) > 96 ? 'end' : 'middle');
  const column = (period: Trend) => {
    const from = x(period.beginsUs), width = x(period.endsUs) - from;
    return html`<g key=${period.beginsUs}><title>${periodText(period, range)}: ${textOf(period)}</title><rect class="over" x=${`${from}%`} width=${`${width}%`} y=${TOP} height=${tall}/>
      ${blocksOf(partsOf(period)).map(block => html`<rect class=${`f-${block.kind}`} x=${`${from + GAP * width}%`} width=${`${(1 - 2 * GAP) * width}%`}
        y=${y(scale.at(block.to))} height=${tall * (scale.at(block.to) - scale.at(block.from))}/>`)}</g>`;
  };
  return html`<div class="figure"><p>${figure}</p><span class="dim num">${scale.unit}</span></div>
    <div class="chart"><svg height=${height} aria-hidden="true">${scale.ticks.map(({at, text}) => html`<text x="100%" y=${y(at) + 4} text-anchor="end">${text}</text>`)}</svg>
      <svg height=${height} role="img" aria-label=${`${name} by ${range.period}: ${figure}`}>
        ${scale.ticks.map(({at}) => html`<line class="g" x1="0" x2="100%" y1=${y(at)} y2=${y(at)}/>`)}
        ${trends.ticks.map(({us, text}, i) => html`<line class="g" x1=${`${x(us)}%`} x2=${`${x(us)}%`} y1=${TOP} y2=${TOP + tall + 4}/>
          <text class=${i % 2 === 1 ? 'fine' : ''} x=${`${x(us)}%`} y=${height - 4} text-anchor=${anchor(us)}>${text}</text>`)}
        ${periods.filter(period => textOf(period) !== '').map(column)}${children}</svg></div>`;
}

// Over a chart, in steps from period to period, and nothing where there is none. `back`: what is between the two.
interface StepsProps { kind: string; trends: Trends; scale: Scale; periods: readonly Trend[]; value: (of: Trend) => number; back?: (of: Trend) => number }
export function Steps({kind, trends: {axis}, scale, periods, value, back}: StepsProps) {
  const x = (us: number): string => (10 * placeOn(axis, us)).toFixed(2), y = (of: number): string => (TALL * (1 - scale.at(of))).toFixed(2);
  const there = (run: readonly Trend[]): string => run.map(each => `${x(each.beginsUs)} ${y(value(each))}H${x(each.endsUs)}`).join('L');
  const andBack = (run: readonly Trend[], of: (each: Trend) => number): string => [...run].reverse().map(each => `L${x(each.endsUs)} ${y(of(each))}H${x(each.beginsUs)}`).join('');
  return html`<svg class="over-all" aria-hidden="true" y=${TOP} height=${TALL} viewBox=${`0 0 1000 ${TALL}`} preserveAspectRatio="none" overflow="visible">
    <path class=${kind} d=${runsOf(periods).map(run => `M${there(run)}${back === undefined ? '' : `${andBack(run, back)}Z`}`).join('')}/></svg>`;
}
export const Level = ({kind, scale, value}: {kind: string; scale: Scale; value: number}) => {
  const y = TOP + TALL * (1 - scale.at(value));
  return html`<line class=${kind} x1="0" x2="100%" y1=${y} y2=${y}/>`;
};

// With what each comes to.
export const Legend = ({parts, text}: {parts: readonly Part[]; text: (amount: number) => string}) => html`<div class="glegend">
  ${parts.map(({kind, amount}) => html`<span key=${kind}><svg aria-hidden="true"><rect class=${`f-${kind}`} width="26" height="12"/></svg>${kindText(kind)} ${text(amount)}</span>`)}</div>`;

export type NumbersColumn = readonly [string, (of: Trend) => string];
export function Numbers({name, trends, columns}: {name: string; trends: Trends; columns: readonly NumbersColumn[]}) {
  const [isOpen, setOpen] = useState(false), {range} = trends;
  const rows = isOpen ? [...trends.periods].reverse().map(period => ({period, cells: columns.map(([, text]) => text(period))})).filter(({cells}) => cells.some(text => text !== '')) : [];
  return html`<details class="numbers" onToggle=${(event: Event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}><summary>As a table</summary>
    ${isOpen && html`<${Table} kind="plain" caption=${`${name} by ${range.period}`} columns=${[`${range.period}, UTC`, ...columns.map(([title]) => [title, 'r'] as const)]}>
      ${rows.map(({period, cells}) => html`<tr key=${period.beginsUs}><td class="num">${periodText(period, range)}</td>${cells.map(text => html`<td class="r">${text}</td>`)}</tr>`)}<//>`}</details>`;
}
