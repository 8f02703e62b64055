// What a view asks for itself: a job with its plans, the plans of all that is ahead, what happened to some jobs, and trends.
import {useComputed} from '@preact/signals';
import {useEffect, useState} from 'preact/hooks';
import {Event, ExplainResponse, Job, Plan, TrendsResponse} from '../../generated/api';
import {ApiError, Dated, readComparedPlans, readJob, readPlans, readTrends} from '../api/client';
import {plannedAhead} from '../model/jobs';
import {loadOlderEvents, standing, state} from './live';
import {knownJob} from './state';

const EVENTS_A_TIME = 2_000;
const AGAIN_MS = 2_000;
const TRENDS_MS = 60_000;     // between two readings
const REQUESTS_PLANNED = 20;  // whose plans a view of all of them reads

export interface Asked<T> {
  answer: T | undefined;    // the last one
  error: ApiError | undefined;
}

// Asked again when there is a new event of the job, and when the controller is back; and after a while where the answer is from before that.
// 0: nothing is asked.
function useAsked<T extends Dated>(job: number, ask: (job: number, signal: AbortSignal) => Promise<T>): Asked<T> {
  const [asked, setAsked] = useState<Asked<T> & {job: number}>({job, answer: undefined, error: undefined});
  const seq = useComputed(() => state.value.changed.get(job) ?? 0), live = standing.value === 'live';
  useEffect(() => {
    if (job === 0 || !live) return undefined;
    const over = new AbortController(), sinceMs = performance.now();
    let again: ReturnType<typeof setTimeout> | undefined;
    const askNow = (): void => {
      ask(job, over.signal).then(
          answer => {
            if (over.signal.aborted) return;
            setAsked({job, answer, error: undefined});
            if (answer.asOfMs < sinceMs) again = setTimeout(askNow, AGAIN_MS);
          },
          (error: unknown) => { if (!over.signal.aborted && error instanceof ApiError) setAsked({job, answer: undefined, error}); });
    };
    askNow();
    return () => {
      over.abort();
      clearTimeout(again);
    };
  }, [job, seq.value, live]);
  return asked.job === job ? asked : {answer: undefined, error: undefined};
}

export const usePlans = (job: number): Asked<ExplainResponse> => useAsked(job, readComparedPlans);

// As the page keeps it up; asked for where the page does not have it, and for its memory, which lists do not tell.
export function useJob(job: number): Asked<Job> {
  const {answer, error} = useAsked(job, readJob), own = answer?.jobs[0], kept = knownJob(state.value, job);
  const known = kept?.memory === 0 && own !== undefined ? {...kept, memory: own.memory} : kept ?? own;
  return {answer: known, error: known === undefined ? error : undefined};
}

const newestPlan = ({id}: Job, signal: AbortSignal): Promise<Plan[]> => readPlans(id, signal).then(({plans}) => plans.slice(-1), () => []);

// The newest plan of each request that has not started, of the most urgent ones. Asked again when one of them is planned again, and when the
// controller is back. What cannot be read is not known.
export function usePlansAhead(): readonly Plan[] {
  const [plans, setPlans] = useState<readonly Plan[]>([]), live = standing.value === 'live';
  const {jobs, changed} = state.value, ahead = plannedAhead(jobs.values()).slice(0, REQUESTS_PLANNED);
  const wanted = ahead.map(({id, plan}) => `${id} ${plan?.plans} ${changed.get(id)}`).join();
  useEffect(() => {
    if (!live) return undefined;
    const over = new AbortController();
    Promise.all(ahead.map(job => newestPlan(job, over.signal))).then(read => { if (!over.signal.aborted) setPlans(read.flat()); });
    return () => over.abort();
  }, [wanted, live]);
  return plans;
}

export interface History {
  events: Event[];       // of these jobs, oldest first
  reachesBack: boolean;  // to `sinceUs`
}

// From the events that the page has; those before them are read as far back as is needed, and as it keeps any.
export function useHistory(jobs: readonly number[], sinceUs: number): History {
  const {events, firstSeq} = state.value, oldest = events.at(-1), wanted = new Set(jobs), [endSeq, setEndSeq] = useState(0);  // behind which there is no more to read
  const reachesBack = firstSeq <= 1 || (oldest !== undefined && oldest.atUs <= sinceUs);
  useEffect(() => {
    if (reachesBack || endSeq === firstSeq || sinceUs === 0 || firstSeq === 0) return undefined;
    const over = new AbortController();
    loadOlderEvents(EVENTS_A_TIME, over.signal).catch(() => undefined).then(() => { if (!over.signal.aborted && state.value.firstSeq === firstSeq) setEndSeq(firstSeq); });
    return () => over.abort();
  }, [reachesBack, endSeq, firstSeq, sinceUs]);
  return {events: events.filter(event => wanted.has(event.job)).reverse(), reachesBack};
}

// Asked again and again while it is shown, and when the controller is back. The last answer stays where there is an error.
export function useTrends(): Asked<TrendsResponse> {
  const [asked, setAsked] = useState<Asked<TrendsResponse>>({answer: undefined, error: undefined}), live = standing.value === 'live';
  useEffect(() => {
    if (!live) return undefined;
    const over = new AbortController();
    const askNow = (): void => {
      readTrends(over.signal).then(
          answer => { if (!over.signal.aborted) setAsked({answer, error: undefined}); },
          (error: unknown) => { if (!over.signal.aborted && error instanceof ApiError) setAsked(({answer}) => ({answer, error})); });
    };
    askNow();
    const again = setInterval(askNow, TRENDS_MS);
    return () => {
      over.abort();
      clearInterval(again);
    };
  }, [live]);
  return asked;
}
