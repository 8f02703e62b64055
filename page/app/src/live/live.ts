// Keeps the state at what the controller says: a snapshot, then the stream of events, and again from the last event if that breaks off.
import {batch, computed, signal} from '@preact/signals';
import {Job} from '../../generated/api';
import {ApiError, Dated, followEvents, readEveryJob, readEvents, readJob, readJobs, readNodes, readPolicy, readSite} from '../api/client';
import {Link, NOT_YET, SILENCE_MS, answered, failed, heard, rested, standingOf} from './link';
import {NOTHING, State, hasBegun, toRead, withAllJobs, withAllOld, withJobs, withNodes, withOlderEvents, withPiece, withSite} from './state';

const EVENTS_AT_FIRST = 300;
const SETTLE_MS = 400;         // events come in groups; what they changed is read once
const LOOK_MS = 2_000;         // between looks at what is still stale, and at progress
const JOBS_MS = 3_000;         // of who is told of no job's events; with many jobs more
const NODES_MS = 10_000;       // what nodes have free changes without events

export const state = signal<State>(NOTHING);
export const link = signal<Link>(NOT_YET);

const steadyMs = signal(performance.now());
let aheadMs = 0;  // of the controller's clock, before this machine's
export const standing = computed(() => standingOf(link.value, steadyMs.value));
// The controller's time, in microseconds, once a second; it stands while nothing is heard.
export const now = signal(0);
// The same at this moment.
export const controllerNowUs = (): number => Math.round((Date.now() + aheadMs) * 1000);
const secondsTo = (ms: number): number => (ms - steadyMs.value) / 1000;
export const heardAgoS = computed(() => Math.max(0, Math.round(-secondsTo(link.value.lastHeardMs ?? steadyMs.value))));
export const retryInS = computed(() => Math.max(0, Math.ceil(secondsTo(link.value.retryAtMs))));

function tick(): void {
  batch(() => {
    steadyMs.value = performance.now();
    if (standing.value === 'live') now.value = controllerNowUs();
  });
}

async function readAll(signal: AbortSignal): Promise<void> {
  const withEnded = state.value.ended !== undefined;
  const [site, policy, jobs, nodes] = await Promise.all([readSite(signal), readPolicy(signal), withEnded ? readEveryJob(signal) : readJobs(signal), readNodes(signal)]);
  aheadMs = site.nowUs / 1000 - Date.now();
  batch(() => {
    link.value = answered(link.value);
    state.value = withNodes(withSite(withAllJobs(state.value, jobs.jobs, jobs.asOfMs, withEnded), site, policy), nodes.nodes);
    tick();
  });
}

// For the views that show jobs that have ended.
export async function loadEnded(): Promise<void> {
  if (state.value.ended !== undefined) return;
  const {jobs, asOfMs} = await readEveryJob();
  state.value = withAllJobs(state.value, jobs, asOfMs, true);
}

// For the views that tell what happened: so many events from before those that are known.
export async function loadOlderEvents(count: number, signal: AbortSignal): Promise<void> {
  const {firstSeq} = state.value, after = Math.max(0, firstSeq - 1 - count);
  if (firstSeq <= 1) return;
  const events = await readEvents(after, firstSeq - 1, signal);
  // Else others have read them meanwhile, or the journal is another one.
  if (state.value.firstSeq === firstSeq) state.value = withOlderEvents(state.value, events, after);
}

// Nothing, if it is not known any more.
async function readOne(id: number, signal: AbortSignal): Promise<{jobs: Job[]} & Dated> {
  const asOfMs = performance.now();
  try {
    return await readJob(id, signal);
  } catch (error) {
    if (error instanceof ApiError && error.isNotShown) return {jobs: [], asOfMs};
    throw error;
  }
}

async function readStale(signal: AbortSignal): Promise<void> {
  if (state.value.allStaleSince !== undefined) return readAll(signal);
  const ids = toRead(state.value);
  if (ids.length === 0) return;
  const answers = await Promise.all(ids.map(id => readOne(id, signal)));
  state.value = withJobs(state.value, ids, answers.flatMap(({jobs}) => jobs), Math.min(...answers.map(({asOfMs}) => asOfMs)));
}

const pause = (ms: number, signal: AbortSignal): Promise<void> => new Promise(done => {
  const timer = setTimeout(done, ms);
  signal.addEventListener('abort', () => { clearTimeout(timer); done(); }, {once: true});
});

// Reads again what events have made stale, as long as the stream lasts.
async function keepUp(signal: AbortSignal): Promise<void> {
  let lookedMs = 0, nodesMs = 0, jobsMs = performance.now(), lookedSeq = -1;
  while (!signal.aborted) {
    await pause(SETTLE_MS, signal);
    const atMs = performance.now(), {lastSeq} = state.value;
    if (signal.aborted || (lastSeq === lookedSeq && atMs - lookedMs < LOOK_MS)) continue;
    [lookedMs, lookedSeq] = [atMs, lastSeq];
    const news = state.value.stale.size > 0;
    if (state.value.changed.size === 0 && atMs - jobsMs > Math.max(JOBS_MS, 2 * state.value.jobs.size)) {
      jobsMs = atMs;
      state.value = withAllOld(state.value);
    }
    await readStale(signal);
    if (news || atMs - nodesMs > NODES_MS) {
      nodesMs = atMs;
      state.value = withNodes(state.value, (await readNodes(signal)).nodes);
    }
  }
}

// Behind the opening of the stream, so that nothing happens between the two.
async function readAtFirst(signal: AbortSignal): Promise<void> {
  await readAll(signal);
  if (state.value.events.length === 0) await loadOlderEvents(EVENTS_AT_FIRST, signal);
  await keepUp(signal);
}

// Until the page is hidden: a browser has six connections to a controller, and each stream keeps one. Fails when the stream ends, or when
// something cannot be read.
async function session(): Promise<void> {
  const ended = new AbortController();
  let silence: ReturnType<typeof setTimeout> | undefined;
  await new Promise<void>((done, reject) => {
    document.addEventListener('visibilitychange', () => { if (document.hidden) done(); }, {signal: ended.signal});
    const over = (): void => reject(new ApiError('UNREACHABLE', 'the stream of events has ended'));
    const beat = (): void => {
      clearTimeout(silence);
      silence = setTimeout(over, SILENCE_MS);
      link.value = heard(link.value, performance.now());
    };
    silence = setTimeout(over, SILENCE_MS);
    followEvents(hasBegun(state.value) ? state.value.lastSeq : undefined, piece => batch(() => {
      if (ended.signal.aborted) return;
      beat();
      state.value = withPiece(state.value, piece, performance.now());
      if (piece.begins !== undefined) readAtFirst(ended.signal).catch(reject);
    }), ended.signal).then(over, reject);
  }).finally(() => {
    clearTimeout(silence);
    ended.abort();
  });
}

async function isSeen(): Promise<void> {
  while (document.hidden) await new Promise(changed => { document.addEventListener('visibilitychange', changed, {once: true}); });
}

let tryNow: () => void = () => undefined;
export const retryNow = (): void => tryNow();

export async function run(): Promise<never> {
  setInterval(tick, 1000);
  for (;;) {
    if (document.hidden) {
      link.value = rested(link.value);
      await isSeen();
    }
    await session().catch((error: unknown) => {
      const {code, message, active} = error instanceof ApiError ? error : new ApiError('UNREACHABLE', String(error));
      link.value = failed(link.value, active === undefined ? {code, message} : {code, message, active}, performance.now());
    });
    tick();
    const wait = new AbortController();
    tryNow = () => wait.abort();
    await pause(link.value.retryAtMs - performance.now(), wait.signal);
  }
}
