// The four panels of Trends. What has no data is said.
import {ReleaseTimes, TierWrites, Trend} from '../../generated/api';
import {Part, Scale, amountOf, linear, ratios, sumOf} from '../model/chart';
import {Trends, deadlinesOf, deadlinesText, kindText, lostOf, lostText, ordersOf, ordersText, predictionsText, ratioText, speedOf, speedText, speedUnit, tierText, tiersOf, writesText, writesTo} from '../model/trends';
import {count, loss, lossUnit, plural} from '../text/amounts';
import {Child, html} from '../ui/html';
import {Panel} from '../ui/parts';
import {Chart, Legend, Level, Numbers, NumbersColumn, Steps, TALL} from './chart';

type TextOf = (of: Trend) => string;
// '' where there is nothing of it.
const where = <T>(there: (of: Trend) => T | undefined, text: (of: T) => string): TextOf => of => {
  const value = there(of);
  return value === undefined ? '' : text(value);
};
const most = (periods: readonly Trend[], of: (each: Trend) => number): number => Math.max(0, ...periods.map(of));

const Nothing = ({title, children}: {title: string; children?: Child}) => html`<${Panel} title=${title}><p class="empty">${children}</p><//>`;

interface StackedProps { title: string; figure: string; trends: Trends; partsOf: (of: Trend) => Part[]; text: (amount: number) => string; scaleOf: (most: number) => Scale; note?: string }
function Stacked({title, figure, trends, partsOf, text, scaleOf, note}: StackedProps) {
  const all = partsOf(trends.all), textOf: TextOf = of => partsOf(of).map(({kind, amount}) => `${text(amount)} ${kindText(kind)}`).join(', ');
  const columns = all.map(({kind}): NumbersColumn => [kindText(kind), where(of => amountOf(partsOf(of), kind), text)]);
  return html`<${Panel} title=${title}><${Chart} name=${title} figure=${figure} trends=${trends} scale=${scaleOf(most(trends.periods, of => sumOf(partsOf(of))))} textOf=${textOf} partsOf=${partsOf}/>
    <${Legend} parts=${all} text=${text}/>${note !== undefined && html`<p class="note">${note}</p>`}<${Numbers} name=${title} trends=${trends} columns=${columns}/><//>`;
}

export function DeadlinesPanel({trends}: {trends: Trends}) {
  const title = 'Deadlines', figure = deadlinesText(trends.all);
  if (figure === '') return html`<${Nothing} title=${title}>No request with a deadline started or was refused ${trends.range.within}.<//>`;
  return html`<${Stacked} title=${title} figure=${figure} trends=${trends} partsOf=${deadlinesOf} text=${count} scaleOf=${(top: number) => linear(top, {name: 'requests', size: 1}, 1)}/>`;
}

export function LostPanel({trends}: {trends: Trends}) {
  const title = 'Lost node time', figure = lostText(trends.all), {preemptions} = trends.all, moves = preemptions > 0 ? `Jobs made way ${plural(preemptions, 'time')}.` : 'No job made way.';
  if (figure === '') return html`<${Nothing} title=${title}>No node time was lost ${trends.range.within}. ${moves}<//>`;
  return html`<${Stacked} title=${title} figure=${figure} trends=${trends} partsOf=${lostOf} text=${loss} scaleOf=${(top: number) => linear(top, lossUnit(top))}
    note=${`In which jobs stood still, or which they have to do again. ${moves}`}/>`;
}

const ORDERS: readonly NumbersColumn[] = [
  ['orders', where(ordersOf, of => count(of.count))], ['a tenth took at most', where(ordersOf, of => ratioText(of.tenth))],
  ['half', where(ordersOf, of => ratioText(of.median))], ['nine tenths', where(ordersOf, of => ratioText(of.ninetieth))],
];
const LINES: readonly (readonly [string, Child])[] = [
  ['median', html`<line class="c-median" x1="0" x2="26" y1="6" y2="6"/>`], ['from a tenth to nine tenths', html`<rect class="c-band" width="26" height="12"/>`],
  ['as predicted', html`<line class="c-one" x1="0" x2="26" y1="6" y2="6"/>`],
];

export function PredictionsPanel({trends}: {trends: Trends}) {
  const title = 'Predictions', figure = predictionsText(trends.all), periods = trends.periods.filter(ordersOf);
  if (figure === '') return html`<${Nothing} title=${title}>No order freed nodes ${trends.range.within}.<//>`;
  const value = (what: 'tenth' | 'median' | 'ninetieth') => (of: Trend): number => (of.releases as ReleaseTimes)[what], [tenth, median, ninetieth] = [value('tenth'), value('median'), value('ninetieth')];
  const scale = ratios(periods.flatMap(of => [tenth(of), ninetieth(of)])), steps = {trends, scale, periods};
  return html`<${Panel} title=${title}><${Chart} name=${title} figure=${figure} trends=${trends} scale=${scale} textOf=${where(ordersOf, ordersText)}>
      <${Steps} kind="c-band" ...${steps} value=${ninetieth} back=${tenth}/><${Level} kind="c-one" scale=${scale} value=${1}/><${Steps} kind="c-median" ...${steps} value=${median}/><//>
    <div class="glegend">${LINES.map(([text, sample]) => html`<span key=${text}><svg aria-hidden="true">${sample}</svg>${text}</span>`)}</div>
    <${Numbers} name=${title} trends=${trends} columns=${ORDERS}/><//>`;
}

// A picture each: one tier may be a hundred times as fast as another.
function TierChart({all, trends, tall}: {all: TierWrites; trends: Trends; tall: number}) {
  const writes = (of: Trend): TierWrites | undefined => writesTo(of, all.tier), speed = (of: Trend): number => speedOf(writes(of)), top = most(trends.periods, speed);
  return html`<${Chart} name="Storage" figure=${`${tierText(all.tier)}: ${writesText(all)}`} trends=${trends} scale=${linear(top, speedUnit(top))} textOf=${where(writes, writesText)}
    partsOf=${(of: Trend) => [{kind: 'write', amount: speed(of)}]} tall=${tall}/>`;
}

export function StoragePanel({trends}: {trends: Trends}) {
  const title = 'Storage', tiers = tiersOf(trends.all);
  if (tiers.length === 0) return html`<${Nothing} title=${title}>No image was written ${trends.range.within}.<//>`;
  const columns = tiers.map(({tier}): NumbersColumn => [tierText(tier), where(of => writesTo(of, tier), of => speedText(speedOf(of)))]);
  return html`<${Panel} title=${title}>${tiers.map(all => html`<${TierChart} key=${all.tier} all=${all} trends=${trends} tall=${TALL / tiers.length}/>`)}
    <p class="note">What an image had on average, from the order, or the end of the job's notice, until it counted.</p><${Numbers} name=${title} trends=${trends} columns=${columns}/><//>`;
}
