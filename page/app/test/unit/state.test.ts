import assert from 'node:assert/strict';
import {test} from 'node:test';
import {NOT_YET, SILENCE_MS, answered, failed, heard, rested, standingOf} from '../../src/live/link';
import {NOTHING, State, areJobsHidden, toRead, withAllJobs, withAllOld, withBeginning, withEvents, withJobs, withOlderEvents, withPiece, withSite} from '../../src/live/state';
import {PieceReader} from '../../src/api/pieces';
import {event, job} from './make';

const SITE = {clusterManager: '', nowUs: 0, newestEvent: 0, user: '', isOperator: false}, POLICY = {yaml: '', file: '', loadedUs: 0, problem: '', defaults: ''};
const LATER = 2000;
const begun = (jobs = [job(1, 'running'), job(2, 'pending')]): State => withAllJobs(withBeginning(NOTHING, 10, 0), jobs, LATER, false);

test('an event makes its job stale, until an answer is from behind it', () => {
  const told = withEvents(begun(), [event(11, 1, 'order-dump')], 5000);
  assert.deepEqual(toRead(told), [1]);
  const early = withJobs(told, [1], [job(1, 'running')], 4999);
  assert.deepEqual(toRead(early), [1], 'the answer may be from before the event');
  const fresh = withJobs(early, [1], [job(1, 'parked')], 5000);
  assert.equal(fresh.stale.size, 0);
  assert.equal(fresh.jobs.get(1)?.state, 'parked');
});

test('events that were there before change nothing', () => {
  const state = begun();
  assert.equal(withEvents(state, [event(9, 1, 'frozen'), event(10, 2, 'frozen')], 1), state);
});

test('a job that has ended leaves, and goes to the ended ones where they are shown', () => {
  const without = withJobs(begun(), [1], [job(1, 'done')], LATER);
  assert.deepEqual([[...without.jobs.keys()], without.ended], [[2], undefined]);
  const shown = withJobs(withAllJobs(begun(), [job(1, 'running'), job(3, 'failed')], LATER, true), [1], [job(1, 'done')], LATER);
  assert.deepEqual([[...shown.jobs.keys()], [...shown.ended?.keys() ?? []]], [[], [3, 1]]);
});

test('a job that is not known any more is gone', () => {
  assert.deepEqual([...withJobs(begun(), [1], [], LATER).jobs.keys()], [2]);
});

test('a page that slept through ten thousand events comes to what a fresh one reads', () => {
  const now = [job(5, 'running'), job(6, 'parked')], events = Array.from({length: 10_000}, (_, i) => event(11 + i, 1 + i % 400, 'started'));
  const slept = withEvents(begun(), events, 9000);
  assert.equal(slept.allStaleSince, 9000, 'all is read at once');
  const awake = withAllJobs(slept, now, 9000 + LATER, false), fresh = withAllJobs(withBeginning(NOTHING, 10_010, 9000), now, 9000 + LATER, false);
  assert.deepEqual([awake.jobs, awake.stale, awake.allStaleSince, awake.lastSeq], [fresh.jobs, fresh.stale, fresh.allStaleSince, fresh.lastSeq]);
});

test('after a reconnection all is read again, and once more where the answer is from before it', () => {
  const again = withBeginning(begun(), 10, 50_000);
  assert.equal(withAllJobs(again, [], 49_999, false).allStaleSince, 50_000);
  assert.equal(withAllJobs(again, [], 50_000, false).allStaleSince, undefined);
});

test('where no event says that all is old any answer will do', () => {
  const old = withAllOld(begun());
  assert.notEqual(old.allStaleSince, undefined);
  assert.equal(withAllJobs(old, [], 0, false).allStaleSince, undefined);
});

test('events that name no job, and move some, make all stale', () => {
  assert.notEqual(withEvents(begun(), [event(11, 0, 'forgotten')], 7).allStaleSince, undefined);
  assert.equal(withEvents(begun(), [event(11, 0, 'cordoned')], 7).allStaleSince, undefined);
});

test('older events go behind, and none is there twice', () => {
  const told = withEvents(begun(), [event(11, 1, 'frozen')], 1);
  const more = withOlderEvents(told, [event(9, 1, 'started'), event(10, 1, 'order-suspend'), event(11, 1, 'frozen')], 8);
  assert.deepEqual(more.events.map(each => each.seq), [11, 10, 9]);
  assert.equal(more.firstSeq, 9);
  assert.equal(withOlderEvents(more, [event(9, 1, 'started')], 8), more);
});

test('events that come in one piece with the beginning are there once, before and behind the reading of older ones', () => {
  const piece = new PieceReader().read(`: here\nid: 10\n\n${[11, 12, 13].map(seq => `id: ${seq}\ndata: {"seq":"${seq}","job":"1"}\n\n`).join('')}`);
  const told = withPiece(NOTHING, piece, 1);
  assert.deepEqual([told.events.map(each => each.seq), told.firstSeq, told.lastSeq], [[13, 12, 11], 11, 13]);
  const more = withOlderEvents(told, [9, 10, 11, 12].map(seq => event(seq, 1, 'note')), 8);
  assert.deepEqual(more.events.map(each => each.seq), [13, 12, 11, 10, 9]);
});

test('a journal that is older than what is known begins anew, with nothing of before', () => {
  const told = withEvents(begun(), [event(11, 1, 'order-dump'), event(12, 3, 'submitted')], 5), ended = withAllJobs(told, [job(3, 'done')], 6, true);
  const restored = withPiece(ended, {begins: 9, events: [event(10, 2, 'frozen')], seq: 10}, 7000);
  assert.deepEqual([restored.events.map(each => each.seq), restored.lastSeq, restored.firstSeq], [[10], 10, 10]);
  assert.deepEqual([[...restored.changed], [...restored.stale], restored.allStaleSince], [[[2, 10]], [[2, 7000]], 7000]);
  assert.deepEqual(restored.ended, new Map(), 'they are read again, as they were asked for');
  assert.equal(withPiece(told, {begins: 9, events: [], seq: 9}, 7000).ended, undefined);
});

test('the place moves by marks too, past events that are not for this reader', () => {
  const told = withPiece(begun(), {begins: undefined, events: [event(12, 1, 'frozen')], seq: 20}, 5);
  assert.deepEqual([told.lastSeq, told.firstSeq, told.events.map(each => each.seq)], [20, 11, [12]]);
  assert.equal(withPiece(told, {begins: undefined, events: [], seq: 20}, 6), told, 'a sign of life changes nothing');
  assert.equal(withPiece(told, {begins: undefined, events: [], seq: 0}, 6), told);
});

test('jobs on their way, and away, are looked at without events', () => {
  assert.deepEqual(toRead(begun([job(1, 'dumping'), job(2, 'parked'), job(3, 'running'), job(4, 'pending')])), [1, 2]);
});

test('no jobs at all, under a policy that hides them, is no news of the cluster', () => {
  const hidden = withSite(begun([]), SITE, {...POLICY, yaml: 'operators: [ada]\nprivate_jobs: true\n'});
  assert.ok(areJobsHidden(hidden));
  assert.ok(!areJobsHidden(withAllJobs(hidden, [job(1, 'running')], 0, false)));
  assert.ok(!areJobsHidden(withSite(begun([]), SITE, {...POLICY, yaml: 'private_jobs: false\n'})));
  assert.ok(!areJobsHidden({...hidden, site: {...SITE, user: 'ada', isOperator: true}}), 'to an operator there are none');
});

const GONE = {code: 'UNREACHABLE', message: ''}, NO = {code: 'UNAVAILABLE', message: ''};
test('a stream that breaks off once is no news; twice is', () => {
  const live = answered(heard(NOT_YET, 0)), once = failed(live, GONE, 100);
  assert.equal(standingOf(once, 100), 'live');
  assert.equal(standingOf(failed(once, GONE, 1200), 1200), 'lost');
  assert.equal(standingOf(failed(failed(live, NO, 1), NO, 2), 2), 'refused');
});

test('silence is a loss after three beats', () => {
  const live = answered(heard(NOT_YET, 0));
  assert.equal(standingOf(live, SILENCE_MS), 'live');
  assert.equal(standingOf(live, SILENCE_MS + 1), 'lost');
});

test('before anything has come, a failure is shown at once', () => {
  assert.equal(standingOf(NOT_YET, 0), 'reading');
  assert.equal(standingOf(failed(NOT_YET, GONE, 0), 0), 'lost');
  assert.equal(standingOf(failed(NOT_YET, NO, 0), 0), 'refused');
});

test('a sign of life alone does not end a failure: what was asked for has to come', () => {
  const twice = failed(failed(heard(NOT_YET, 0), NO, 1), NO, 2);
  assert.equal(standingOf(heard(twice, 3), 3), 'refused');
  assert.equal(standingOf(answered(heard(twice, 3)), 3), 'live');
});

test('tries come further apart, up to a limit', () => {
  let link = NOT_YET;
  const waits = [1, 2, 3, 4, 5, 6].map(() => { link = failed(link, GONE, 0); return link.retryAtMs; });
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 15000, 15000]);
});

test('who comes back from a rest is not live until there is an answer, and a failure shows at once', () => {
  const back = rested(failed(answered(heard(NOT_YET, 0)), GONE, 1)), late = 10 * SILENCE_MS;
  assert.equal(standingOf(back, late), 'reading');
  assert.equal(standingOf(heard(back, late), late), 'reading');
  assert.equal(standingOf(answered(heard(back, late)), late), 'live');
  assert.equal(standingOf(failed(back, GONE, late), late), 'lost');
});
