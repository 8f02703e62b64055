// What happened by hour or by day: what is drawn of it, and what is said. Pure.
import {ReleaseTimes, Tier, TierWrites, Trend, TrendsResponse} from '../../generated/api';
import {Unit, byteUnit, bytes, count, loss, plural, rounded} from '../text/amounts';
import {clock, day} from '../text/time';
import {Part, some, sumOf} from './chart';
import {Axis, Tick} from './timeline';

export const HOUR_US = 3600e6;
const DAY_US = 24 * HOUR_US;

export interface Range {
  query: string;     // in the address
  text: string;
  within: string;
  period: 'hour' | 'day';
  periodUs: number;
  periods: number;
  tickUs: number;
}
const WEEK: Range = {query: '', text: '7 days, by hour', within: 'in these 7 days', period: 'hour', periodUs: HOUR_US, periods: 168, tickUs: DAY_US};
const QUARTER: Range = {query: '90d', text: '90 days, by day', within: 'in these 90 days', period: 'day', periodUs: DAY_US, periods: 90, tickUs: 14 * DAY_US};
export const RANGES: readonly Range[] = [WEEK, QUARTER];
export const rangeNamed = (query: string): Range => RANGES.find(range => range.query === query) ?? WEEK;

export interface Trends {
  range: Range;
  axis: Axis;                 // of the whole range, up to the end of the period that is under way
  ticks: readonly Tick[];
  periods: readonly Trend[];  // in which something happened, the oldest first
  all: Trend;                 // together
}
const NONE: Trend = {beginsUs: 0, endsUs: 0, met: 0, missed: 0, refused: 0, preemptions: 0, lost: [], writes: []};

export function trendsOf({hours, days, week, quarter}: TrendsResponse, range: Range, nowUs: number): Trends {
  const [given, all] = range === QUARTER ? [days, quarter] : [hours, week], {periodUs, tickUs} = range;
  const toUs = Math.max(periodUs * (Math.floor(nowUs / periodUs) + 1), given.at(-1)?.endsUs ?? 0), fromUs = toUs - range.periods * periodUs, ticks: Tick[] = [];
  for (let us = tickUs * Math.ceil(fromUs / tickUs); us < toUs; us += tickUs) ticks.push({us, text: day(us)});
  return {range, axis: {fromUs, toUs}, ticks, periods: given.filter(({beginsUs}) => beginsUs >= fromUs), all: all ?? NONE};
}

// "26 Nov 14:00 to 15:00", "26 Nov".
export function periodText({beginsUs, endsUs}: Trend, {period}: Range): string {
  return period === 'day' ? day(beginsUs) : `${day(beginsUs)} ${clock(beginsUs).slice(0, 5)} to ${clock(endsUs).slice(0, 5)}`;
}

// Of periods that follow one another.
export function runsOf(periods: readonly Trend[]): Trend[][] {
  const runs: Trend[][] = [];
  for (const period of periods) {
    const run = runs.at(-1);
    if (run?.at(-1)?.endsUs === period.beginsUs) run.push(period);
    else runs.push([period]);
  }
  return runs;
}

export const deadlinesOf = ({met, missed, refused}: Trend): Part[] => some([{kind: 'met', amount: met}, {kind: 'missed', amount: missed}, {kind: 'refused', amount: refused}]);
export function deadlinesText({met, missed, refused}: Trend): string {
  const turnedAway = refused === 0 ? 'no request refused' : `${plural(refused, 'request')} refused`;
  if (met + missed > 0) return `${count(met)} of ${plural(met + missed, 'deadline')} met, ${turnedAway}`;
  return refused > 0 ? `No request started, ${turnedAway}` : '';
}

// In this order; one that this page does not know yet comes last.
const HOWS = ['suspend', 'checkpoint', 'app', 'kill', 'failure'], rank = ({kind}: Part): number => (HOWS.includes(kind) ? HOWS.indexOf(kind) : HOWS.length);
export const lostOf = ({lost}: Trend): Part[] => some(lost.map(({how, nodeSeconds}) => ({kind: how, amount: nodeSeconds}))).sort((a, b) => rank(a) - rank(b));
export const lostText = (all: Trend): string => (lostOf(all).length > 0 ? `${loss(sumOf(lostOf(all)))} lost` : '');

const KINDS: Record<string, string> = {app: 'own save'};
export const kindText = (kind: string): string => KINDS[kind] ?? kind;

// undefined: there were none.
export const ordersOf = ({releases}: Trend): ReleaseTimes | undefined => (releases !== undefined && releases.count > 0 ? releases : undefined);
export const ratioText = (x: number): string => rounded(x, 2);
export function ordersText({count: orders, tenth, median, ninetieth}: ReleaseTimes): string {
  return orders === 1 ? `1 order, ${ratioText(median)}` : `${count(orders)} orders, a tenth at most ${ratioText(tenth)}, half ${ratioText(median)}, nine tenths ${ratioText(ninetieth)}`;
}
export function predictionsText(all: Trend): string {
  const of = ordersOf(all);
  if (of === undefined) return '';
  if (of.count === 1) return `1 order took ${ratioText(of.median)} of what was predicted`;
  return `Half of ${count(of.count)} orders took at most ${ratioText(of.median)} of what was predicted, nine tenths at most ${ratioText(of.ninetieth)}`;
}

// Into which something was written that took a time.
export const tiersOf = ({writes}: Trend): TierWrites[] => writes.filter(of => of.bytes > 0 && of.seconds > 0);
export const writesTo = (of: Trend, tier: Tier): TierWrites | undefined => tiersOf(of).find(each => each.tier === tier);
// Bytes a second of an image.
export const speedOf = (of: TierWrites | undefined): number => (of === undefined ? 0 : of.bytes / of.seconds);
export const speedText = (bytesPerSecond: number): string => `${bytes(bytesPerSecond)}/s`;
export const speedUnit = (bytesPerSecond: number): Unit => ({...byteUnit(bytesPerSecond), name: `${byteUnit(bytesPerSecond).name}/s`});
export const writesText = (of: TierWrites): string => `${speedText(speedOf(of))}, ${plural(of.images, 'image')}${of.images === 1 ? ' of' : ', together'} ${bytes(of.bytes)}`;
const TIERS: Partial<Record<Tier, string>> = {SHARED: 'Shared storage', LOCAL: 'Local storage'};
export const tierText = (tier: Tier): string => TIERS[tier] ?? tier;
