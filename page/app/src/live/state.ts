// What the page knows of the cluster, from a snapshot and the events behind it. Pure: answers come in, a new state comes out.
//
// Events do not say all that changes in a job. So an event makes its job stale, and whoever holds the state reads that job again: a page
// that slept through ten thousand events comes to what a fresh one reads. The controller may answer what it has answered a moment ago,
// so a job stays stale until an answer is from behind that moment: `asOfMs` says from when, in milliseconds of the page's clock.
import {Event, Job, Node, PolicyInForce, SiteInfo} from '../../generated/api';
import {Piece} from '../api/pieces';
import {hasEnded, isAway, isInMotion, waitsForDeadline} from '../model/jobs';

const EVENTS_KEPT = 5_000;
// Beyond this many stale jobs, all are read in one answer.
const READ_SINGLY = 16;

export interface State {
  site: SiteInfo | undefined;                   // undefined: nothing has been read yet
  policy: PolicyInForce | undefined;
  privateJobs: boolean;                         // the policy shows jobs to their users and to operators alone
  jobs: ReadonlyMap<number, Job>;               // that have not ended
  ended: ReadonlyMap<number, Job> | undefined;  // undefined: nobody has asked for them
  nodes: readonly Node[];
  events: readonly Event[];                     // newest first, without gaps
  lastSeq: number;                              // up to which all has been said; those that are not for this reader count
  firstSeq: number;                             // from this one on no event is missing in `events`; 0: no stream has begun yet
  stale: ReadonlyMap<number, number>;           // job -> when that became known, in milliseconds of the page's clock
  allStaleSince: number | undefined;
  changed: ReadonlyMap<number, number>;         // job -> the newest event that it was in
}

export const NOTHING: State = {
  site: undefined, policy: undefined, privateJobs: false, jobs: new Map(), ended: undefined, nodes: [], events: [], lastSeq: 0, firstSeq: 0, stale: new Map(), allStaleSince: undefined,
  changed: new Map(),
};

const byId = (jobs: readonly Job[]): Map<number, Job> => new Map(jobs.map(job => [job.id, job]));
const isFresh = (since: number, asOfMs: number): boolean => since <= asOfMs;

// All jobs, those that have ended only where they have been asked for.
export function withAllJobs(state: State, jobs: readonly Job[], asOfMs: number, withEnded: boolean): State {
  const {allStaleSince} = state;
  return {
    ...state,
    jobs: byId(jobs.filter(job => !hasEnded(job))),
    ended: withEnded ? byId(jobs.filter(hasEnded)) : state.ended,
    stale: new Map([...state.stale].filter(([, since]) => !isFresh(since, asOfMs))),
    allStaleSince: allStaleSince !== undefined && isFresh(allStaleSince, asOfMs) ? undefined : allStaleSince,
  };
}

// `asked`: for these; those of them that are not in `answered` are not known any more.
export function withJobs(state: State, asked: readonly number[], answered: readonly Job[], asOfMs: number): State {
  const jobs = new Map(state.jobs), ended = state.ended === undefined ? undefined : new Map(state.ended), stale = new Map(state.stale);
  for (const id of asked) {
    jobs.delete(id);
    ended?.delete(id);
    const since = stale.get(id);
    if (since !== undefined && isFresh(since, asOfMs)) stale.delete(id);
  }
  for (const job of answered) (hasEnded(job) ? ended : jobs)?.set(job.id, job);
  return {...state, jobs, ended, stale};
}

export function withEvents(state: State, events: readonly Event[], nowMs: number): State {
  const fresh = events.filter(event => event.seq > state.lastSeq);
  const newest = fresh.at(-1);
  if (newest === undefined) return state;
  const stale = new Map(state.stale), changed = new Map(state.changed);
  // It was about jobs that it does not name, or changes what this reader may see.
  let all = fresh.some(event => event.kind === 'forgotten' || event.kind === 'policy-changed' || (event.kind === 'restored' && event.job === 0));
  for (const {job, seq} of fresh) {
    if (job === 0) continue;
    stale.set(job, nowMs);
    changed.set(job, seq);
  }
  all ||= stale.size > READ_SINGLY;
  return {
    ...state, stale, changed,
    allStaleSince: all ? nowMs : state.allStaleSince,
    events: [...fresh.slice(-EVENTS_KEPT).reverse(), ...state.events].slice(0, EVENTS_KEPT),
    lastSeq: newest.seq,
  };
}

export const hasBegun = (state: State): boolean => state.firstSeq > 0;

// The stream has begun behind that event, and whatever was known before may be old. If that is before the last event that is known, the
// controller has another journal, restored from a copy: what has been told of since then is not so.
export function withBeginning(state: State, seq: number, nowMs: number): State {
  if (hasBegun(state) && seq >= state.lastSeq) return {...state, lastSeq: seq, allStaleSince: nowMs};
  const none = {events: [], stale: new Map(), changed: new Map(), ended: state.ended === undefined ? undefined : new Map()};
  return {...state, ...none, lastSeq: seq, firstSeq: seq + 1, allStaleSince: nowMs};
}

export function withPiece(state: State, {begins, events, seq}: Piece, nowMs: number): State {
  const told = withEvents(begins === undefined ? state : withBeginning(state, begins, nowMs), events, nowMs);
  return seq > told.lastSeq ? {...told, lastSeq: seq} : told;
}

// All is to be read once more, though no event says so: any answer will do.
export const withAllOld = (state: State): State => ({...state, allStaleSince: state.allStaleSince ?? -Infinity});

// Events from before those that are known, oldest first; `after`: the event behind which they begin.
export function withOlderEvents(state: State, events: readonly Event[], after: number): State {
  if (after + 1 >= state.firstSeq) return state;
  const older = events.filter(event => event.seq < state.firstSeq);
  return {...state, events: [...state.events, ...[...older].reverse()].slice(0, EVENTS_KEPT), firstSeq: after + 1};
}

export const withNodes = (state: State, nodes: readonly Node[]): State => ({...state, nodes});
export const withSite = (state: State, site: SiteInfo, policy: PolicyInForce): State =>
  ({...state, site, policy, privateJobs: /^\s*private_jobs:\s*true\b/m.test(policy.yaml)});

// Whether there are jobs, this reader is not told.
export const areJobsHidden = (state: State): boolean => state.privateJobs && state.jobs.size === 0 && state.site?.isOperator !== true;

// Those to read next: stale ones, and those whose progress, or whose way back, or who of those that make way for them are gone, moves without
// events of theirs.
export function toRead(state: State): number[] {
  const moving = [...state.jobs.values()].filter(job => isInMotion(job) || isAway(job) || waitsForDeadline(job)).slice(0, READ_SINGLY).map(job => job.id);
  return [...new Set([...state.stale.keys(), ...moving])];
}

export const knownJob = (state: State, id: number): Job | undefined => state.jobs.get(id) ?? state.ended?.get(id);
