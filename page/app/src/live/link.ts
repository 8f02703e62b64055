// Whether the controller is heard. Pure; times are of this machine's steady clock, in milliseconds.
import {Active} from '../api/client';

export const HEARTBEAT_MS = 15_000;             // the stream has a comment as often as this
export const SILENCE_MS = 3 * HEARTBEAT_MS;     // and is given up after this
const FAILURES_SHOWN = 2;                       // one that is followed by success is no news

export interface Failure {
  code: string;     // of gRPC; UNREACHABLE: there was no answer
  message: string;
  active?: Active;  // it stands by, and this one does not
}

export interface Link {
  lastHeardMs: number | undefined;  // undefined: never
  failures: number;                 // in a row
  failure: Failure | undefined;     // the last one, until something has been answered
  retryAtMs: number;                // of the next try, while there is none under way
  isBehind: boolean;                // nobody looked for a while, and it has not been read anew yet
}

export const NOT_YET: Link = {lastHeardMs: undefined, failures: 0, failure: undefined, retryAtMs: 0, isBehind: false};

export const heard = (link: Link, nowMs: number): Link => ({...link, lastHeardMs: nowMs});
// What was asked for has come.
export const answered = (link: Link): Link => ({...link, failures: 0, failure: undefined, retryAtMs: 0, isBehind: false});
// Nobody looks: nothing is asked for.
export const rested = (link: Link): Link => ({...answered(link), isBehind: true});

export function failed(link: Link, failure: Failure, nowMs: number): Link {
  const failures = link.failures + 1;
  const waitMs = Math.min(15_000, 1000 * 2 ** Math.min(failures - 1, 4));
  return {...link, failures, failure, retryAtMs: nowMs + waitMs};
}

// reading: nothing has come yet, or not since it rested. refused: there is an answer, and it is no. lost: it was there, and is not heard any more.
export type Standing = 'reading' | 'live' | 'lost' | 'refused';

export function standingOf(link: Link, nowMs: number): Standing {
  const unreachable = link.failure === undefined || link.failure.code === 'UNREACHABLE';
  if (link.lastHeardMs === undefined || link.isBehind) return link.failure === undefined ? 'reading' : unreachable ? 'lost' : 'refused';
  if (link.failures >= FAILURES_SHOWN) return unreachable ? 'lost' : 'refused';
  return nowMs - link.lastHeardMs > SILENCE_MS ? 'lost' : 'live';
}
