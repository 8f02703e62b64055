// Where amounts are in a chart. Pure.
import {Unit, rounded} from '../text/amounts';

// Of a bar, from below.
export interface Part { kind: string; amount: number }
export interface Block { kind: string; from: number; to: number }
export const some = (parts: readonly Part[]): Part[] => parts.filter(({amount}) => amount > 0);
export const sumOf = (parts: readonly Part[]): number => parts.reduce((sum, {amount}) => sum + amount, 0);
export const amountOf = (parts: readonly Part[], kind: string): number | undefined => parts.find(part => part.kind === kind)?.amount;
export function blocksOf(parts: readonly Part[]): Block[] {
  let to = 0;
  return parts.map(({kind, amount}) => ({kind, from: to, to: to += amount}));
}

export interface Scale {
  unit: string;
  ticks: readonly {at: number; text: string}[];  // from two to four
  at: (value: number) => number;                 // from 0, at the bottom, to 1
}

// From 0 to `most`. `leastStep`: of what there are no parts.
export function linear(most: number, {name, size}: Unit, leastStep = 0): Scale {
  const top = most > 0 ? most / size : 1, power = 10 ** Math.floor(Math.log10(top / 4));
  const step = Math.max(leastStep, [1, 2, 5, 10].map(each => each * power).find(each => top / each < 4) ?? top);
  const ticks = [0, 1, 2, 3].map(i => i * step).filter(each => each <= top * (1 + 1e-9));
  return {unit: name, ticks: ticks.map(each => ({at: each / top, text: rounded(each)})), at: value => value / size / top};
}

const RATIOS = [[0.1, 0.2, 0.5, 1, 2, 5, 10, 20], [0.05, 0.2, 1, 5, 20], [0.1, 1, 10]];
// Logarithmic: half as long is as far from 1 as twice as long.
export function ratios(values: readonly number[]): Scale {
  const from = Math.max(0.01, Math.min(0.5, ...values)), to = Math.max(2, ...values), at = (value: number): number => Math.log(Math.max(from, value) / from) / Math.log(to / from);
  const ticks = RATIOS.map(list => list.filter(each => each >= from && each <= to)).find(list => list.length <= 4) ?? [1];
  return {unit: 'observed / predicted', ticks: ticks.map(each => ({at: at(each), text: rounded(each)})), at};
}
