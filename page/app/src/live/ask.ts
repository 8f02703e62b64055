// What a view asks for itself: a job with its plans, and what happened to some jobs.
import {useComputed} from '@preact/signals';
import {useEffect, useState} from 'preact/hooks';
import {Event, ExplainResponse} from '../../generated/api';
import {ApiError, readPlans} from '../api/client';
import {loadOlderEvents, standing, state} from './live';

const EVENTS_A_TIME = 2_000;

export interface Asked<T> {
  answer: T | undefined;  // the last one
  error: ApiError | undefined;
}

// Asked again when there is a new event of the job, and when the controller is back. 0: nothing is asked.
export function usePlans(job: number): Asked<ExplainResponse> {
  const [asked, setAsked] = useState<Asked<ExplainResponse> & {job: number}>({job, answer: undefined, error: undefined});
  const seq = useComputed(() => state.value.changed.get(job) ?? 0), live = standing.value === 'live';
  useEffect(() => {
    if (job === 0 || !live) return undefined;
    const over = new AbortController();
    readPlans(job, over.signal).then(
        answer => setAsked({job, answer, error: undefined}),
        (error: unknown) => { if (!over.signal.aborted && error instanceof ApiError) setAsked({job, answer: undefined, error}); });
    return () => over.abort();
  }, [job, seq.value, live]);
  return asked.job === job ? asked : {answer: undefined, error: undefined};
}

export interface History {
  events: Event[];    // of these jobs, oldest first
  reachesBack: boolean;  // to `sinceUs`
}

// From the events that the page has; those before them are read as far back as is needed, and as it keeps any.
export function useHistory(jobs: readonly number[], sinceUs: number): History {
  const {events, firstSeq} = state.value, oldest = events.at(-1), wanted = new Set(jobs), [isEnd, setEnd] = useState(false);
  const reachesBack = firstSeq <= 1 || (oldest !== undefined && oldest.atUs <= sinceUs);
  useEffect(() => {
    if (reachesBack || isEnd || sinceUs === 0 || firstSeq === 0) return undefined;
    const over = new AbortController();
    loadOlderEvents(EVENTS_A_TIME, over.signal).catch(() => undefined).then(() => { if (state.value.firstSeq === firstSeq) setEnd(true); });
    return () => over.abort();
  }, [reachesBack, isEnd, firstSeq, sinceUs]);
  return {events: events.filter(event => wanted.has(event.job)).reverse(), reachesBack};
}
