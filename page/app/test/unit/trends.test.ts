import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Trend} from '../../generated/api';
import {decode} from '../../src/api/decode';
import {blocksOf, linear, ratios} from '../../src/model/chart';
import {RANGES, Range, deadlinesText, lostOf, lostText, ordersText, periodText, predictionsText, rangeNamed, runsOf, speedOf, speedUnit, tiersOf, trendsOf, writesText} from '../../src/model/trends';

const HOUR_US = 3600e6, DAY_US = 24 * HOUR_US, NOON = Date.UTC(2026, 10, 27, 12, 20) * 1000, HOUR = Date.UTC(2026, 10, 27, 12) * 1000;
const [WEEK, QUARTER] = RANGES as [Range, Range];
const trend = (more: Partial<Trend> = {}): Trend => ({...decode('TrendsResponse', {hours: [{}]}).hours[0]!, ...more});
const hour = (beginsUs: number, more: Partial<Trend> = {}): Trend => trend({beginsUs, endsUs: beginsUs + HOUR_US, ...more});
const releases = (count: number) => ({releases: {count, tenth: 0.612, median: 0.97, ninetieth: 1.33}});

test('the axis is of the whole range, up to the end of what is under way', () => {
  const {axis, ticks, periods, all} = trendsOf({hours: [hour(HOUR - 168 * HOUR_US), hour(HOUR - 167 * HOUR_US), hour(HOUR)], days: []}, WEEK, NOON);
  assert.deepEqual([axis.fromUs, axis.toUs], [HOUR - 167 * HOUR_US, HOUR + HOUR_US]);
  assert.deepEqual(periods.map(each => each.beginsUs), [HOUR - 167 * HOUR_US, HOUR], 'what is older is not drawn');
  assert.deepEqual(ticks.map(tick => tick.text), ['21 Nov', '22 Nov', '23 Nov', '24 Nov', '25 Nov', '26 Nov', '27 Nov']);
  assert.equal(all.met, 0, 'a controller that says nothing of all together');
});

test('a period that has begun since the clock was read is on the axis', () => {
  assert.equal(trendsOf({hours: [hour(HOUR + HOUR_US)], days: []}, WEEK, NOON).axis.toUs, HOUR + 2 * HOUR_US);
});

test('the range of 90 days has days, and its own sum', () => {
  const {axis, periods, all, ticks} = trendsOf({hours: [hour(HOUR)], days: [], quarter: trend({met: 4})}, rangeNamed('90d'), NOON);
  assert.deepEqual([periods.length, all.met, (axis.toUs - axis.fromUs) / DAY_US, ticks.length], [0, 4, 90, 6]);
  assert.equal(rangeNamed('other'), WEEK);
});

test('a period says when it was', () => {
  assert.equal(periodText(hour(HOUR), WEEK), '27 Nov 12:00 to 13:00');
  assert.equal(periodText(trend({beginsUs: HOUR - 12 * HOUR_US}), QUARTER), '27 Nov');
});

test('parts of a bar stand on one another', () => {
  assert.deepEqual(blocksOf([{kind: 'met', amount: 3}, {kind: 'missed', amount: 1}]), [{kind: 'met', from: 0, to: 3}, {kind: 'missed', from: 3, to: 4}]);
});

test('what was lost has its order, and one that is not known comes last', () => {
  const lost = [['failure', 1], ['later', 2], ['app', 0], ['suspend', 3]].map(([how, nodeSeconds]) => ({how: String(how), nodeSeconds: Number(nodeSeconds)}));
  assert.deepEqual(lostOf(trend({lost})).map(({kind}) => kind), ['suspend', 'failure', 'later']);
  assert.equal(lostText(trend({lost})), '6.0 node-s lost');
  assert.equal(lostText(trend()), '');
});

test('ticks are round, and two to four', () => {
  const texts = (most: number, least = 0): string[] => linear(most, {name: '', size: 1}, least).ticks.map(tick => tick.text);
  assert.deepEqual([texts(1, 1), texts(7, 1), texts(43, 1), texts(0.3), texts(7100), texts(0)], [['0', '1'], ['0', '2', '4', '6'], ['0', '20', '40'], ['0', '0.1', '0.2', '0.3'], ['0', '2,000', '4,000', '6,000'], ['0', '0.5', '1']]);
  for (let most = 0.01; most < 1e6; most *= 1.07) assert.ok([2, 3, 4].includes(texts(most).length), String(most));
  const {at, unit} = linear(3 * 1024 ** 3, speedUnit(3 * 1024 ** 3));
  assert.deepEqual([at(0), at(1.5 * 1024 ** 3), unit], [0, 0.5, 'GiB/s']);
});

test('half as long is as far from 1 as twice as long', () => {
  const scale = ratios([0.9, 1.3]);
  assert.deepEqual([scale.at(0.5), scale.at(1), scale.at(2)], [0, 0.5, 1]);
  assert.deepEqual(scale.ticks.map(tick => tick.text), ['0.5', '1', '2']);
  for (const values of [[0, 0], [1 / 32, 32], [0.2, 5], [0.5, 8], [0.1, 2], [1, 32]]) {
    const {ticks, at} = ratios(values);
    assert.ok([2, 3, 4].includes(ticks.length) && ticks.some(tick => tick.text === '1'), String(values));
    assert.ok(values.every(value => at(value) >= 0 && at(value) <= 1), String(values));
  }
});

test('hours that follow one another are a run', () => {
  assert.deepEqual(runsOf([hour(HOUR), hour(HOUR + HOUR_US), hour(HOUR + 3 * HOUR_US)]).map(run => run.length), [2, 1]);
  assert.deepEqual(runsOf([]), []);
});

test('deadlines are told with what was refused, and as nothing where there were none', () => {
  assert.equal(deadlinesText(trend({met: 41, missed: 2, refused: 3})), '41 of 43 deadlines met, 3 requests refused');
  assert.equal(deadlinesText(trend({met: 1})), '1 of 1 deadline met, no request refused');
  assert.equal(deadlinesText(trend({refused: 1})), 'No request started, 1 request refused');
  assert.equal(deadlinesText(trend()), '');
});

test('predictions are told as exactly as they are known', () => {
  assert.equal(predictionsText(trend(releases(57))), 'Half of 57 orders took at most 0.97 of what was predicted, nine tenths at most 1.3');
  assert.equal(predictionsText(trend(releases(1))), '1 order took 0.97 of what was predicted');
  assert.equal(predictionsText(trend({releases: {count: 0, tenth: 0, median: 0, ninetieth: 0}})), '');
  assert.equal(ordersText(releases(2).releases), '2 orders, a tenth at most 0.61, half 0.97, nine tenths 1.3');
});

test('a tier is told where something was written that took a time', () => {
  const writes = [{tier: 'LOCAL' as const, images: 1, bytes: 5e9, seconds: 0}, {tier: 'SHARED' as const, images: 2, bytes: 3 * 1024 ** 3, seconds: 4}];
  const [shared, ...others] = tiersOf(trend({writes}));
  assert.deepEqual([shared?.tier, others], ['SHARED', []]);
  assert.equal(writesText(shared!), '768 MiB/s, 2 images, together 3.0 GiB');
  assert.equal(speedOf(undefined), 0);
});
