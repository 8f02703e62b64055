import assert from 'node:assert/strict';
import {test} from 'node:test';
import {moveFor, movesOf} from '../../src/model/moves';
import {placeOn, ticksOf, timeLineOf} from '../../src/model/timeline';
import {rowsInSight} from '../../src/ui/rows';
import {event, job, plan, request, step} from './make';

const kinds = (events: ReturnType<typeof event>[]) => movesOf(events).at(-1)?.spans.map(span => span.kind);
const order = (seq: number, kind: string) => event(seq, 1, kind, {request: 7, predictedUs: (seq + 3) * 1e6});

test('a checkpoint: told, whole, free, back', () => {
  const [move] = movesOf([order(1, 'order-dump'), event(3, 1, 'commit', {bytes: 9}), event(4, 1, 'released'), event(8, 1, 'place'), event(9, 1, 'restored')]);
  assert.deepEqual([move?.way, move?.request, move?.predictedUs, move?.freeUs, move?.durableUs, move?.bytes, move?.backUs, move?.over], ['checkpoint', 7, 4e6, 4e6, 3e6, 9, 9e6, 'back']);
  assert.deepEqual(move?.spans.map(span => [span.kind, span.fromUs, span.toUs]),
      [['leave', 1e6, 3e6], ['commit', 3e6, 4e6], ['parked', 4e6, 8e6], ['restore', 8e6, 9e6], ['run', 9e6, undefined]]);
});

test('through RAM: its nodes are free when it is frozen, and it stays frozen until its image is whole', () => {
  const events = [order(1, 'order-suspend'), event(2, 1, 'frozen'), order(3, 'order-dump'), event(5, 1, 'commit'), event(6, 1, 'released')];
  const [move] = movesOf(events);
  assert.deepEqual([move?.way, move?.freeUs, move?.durableUs, move?.over], ['checkpoint through RAM', 2e6, 5e6, '']);
  assert.deepEqual(kinds(events), ['leave', 'frozen', 'parked']);
});

test('frozen and thawed', () => {
  assert.deepEqual(kinds([order(1, 'order-suspend'), event(2, 1, 'frozen'), event(5, 1, 'order-resume'), event(6, 1, 'thawed')]), ['leave', 'frozen', 'restore', 'run']);
});

test('one that could not be dumped stayed, and one that ended is over', () => {
  assert.equal(movesOf([order(1, 'order-dump'), event(2, 1, 'dump-failed')])[0]?.over, 'stayed');
  assert.equal(movesOf([order(1, 'order-kill'), event(2, 1, 'succeeded')])[0]?.over, 'ended');
});

test('orders that are for no request are no preemption', () => {
  assert.deepEqual(movesOf([event(1, 1, 'order-dump'), event(2, 1, 'commit'), event(3, 1, 'released')]), []);
});

test('each time that it made way is a move of its own', () => {
  const again = [order(1, 'order-suspend'), event(2, 1, 'frozen'), event(3, 1, 'thawed'), event(4, 1, 'order-kill', {request: 9}), event(5, 1, 'requeued')];
  const moves = movesOf(again);
  assert.deepEqual(moves.map(move => [move.request, move.over]), [[7, 'back'], [9, '']]);
  assert.equal(moveFor(moves, 7), moves[0]);
  assert.equal(moveFor(moves, 0), moves[1]);
  assert.equal(moveFor(moves, 5), undefined);
});

const asked = request(7, 48e6, {state: 'running', submittedUs: 0.5e6, firstStartedUs: 6e6});
const told = [order(1, 'order-dump'), event(4, 1, 'released'), event(5, 7, 'place'), event(6, 7, 'started')];

test('a time line has the request, and who was told to go', () => {
  const line = timeLineOf(asked, [plan({steps: [step(1, {predictedReleaseUs: 3e6})]})], told, 60e6);
  assert.deepEqual(line.rows.map(row => [row.job, row.segments.map(each => each.kind)]), [[7, ['wait', 'start', 'od']], [1, ['run', 'leave', 'parked']]]);
  assert.equal(line.grantedUs, 5e6);
  assert.ok(line.out.toUs > 48e6 && line.out.toUs < 60e6, 'the way out reaches behind the deadline');
  assert.equal(line.back?.fromUs, line.out.toUs);
});

test('without a plan the events say who went', () => {
  assert.deepEqual(timeLineOf(asked, [], told, 60e6).rows.map(row => row.job), [7, 1]);
});

test('who is in an earlier plan alone, and was never told to go, has no row', () => {
  const plans = [plan({steps: [step(1), step(2)]}), plan({steps: [step(3)]})];
  assert.deepEqual(timeLineOf(asked, plans, told, 60e6).rows.map(row => row.job), [7, 1, 3]);
});

test('ticks are few and round', () => {
  assert.deepEqual(ticksOf({fromUs: -1e6, toUs: 51e6}, 0).map(tick => tick.text), ['0 s', '10 s', '20 s', '30 s', '40 s', '50 s']);
  assert.deepEqual(ticksOf({fromUs: 0, toUs: 1200e6}, 0).map(tick => tick.text), ['0 min', '5 min', '10 min', '15 min', '20 min']);
  assert.equal(placeOn({fromUs: 0, toUs: 10}, 25), 100);
});

test('rows that exist are those in sight and some around', () => {
  assert.deepEqual(rowsInSight(0, 340, 34, 10_000), [0, 18]);
  assert.deepEqual(rowsInSight(34_000, 340, 34, 10_000), [992, 1018]);
  assert.deepEqual(rowsInSight(34_000, 340, 34, 5), [4, 5]);
  assert.deepEqual(rowsInSight(0, 340, 34, 0), [0, 0]);
});

test('a job that waits is no move', () => {
  assert.equal(moveFor(movesOf([event(1, job(1, 'pending').id, 'submitted')]), 0), undefined);
});
