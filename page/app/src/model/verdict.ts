// Is every deadline safe? One sentence, from the requests that have not started yet and what their newest plans say.
import {Job, PlanSummary} from '../../generated/api';
import {duration} from '../text/time';
import {deadlineOf, nameOf, waitsForDeadline} from './jobs';

export interface Request {
  job: Job;
  dueUs: number;
  plan: PlanSummary | undefined;   // undefined: not shown, or there is none
  startUs: number;                 // predicted; 0: not known
  marginS: number | undefined;
  late: boolean;                   // will be, or is
}

// Those that are late first, then by deadline.
export function requestsAhead(jobs: Iterable<Job>, nowUs: number): Request[] {
  return [...jobs].filter(waitsForDeadline).map(job => {
    const dueUs = deadlineOf(job), {plan} = job;
    const startUs = plan?.predictedStartUs ?? 0, marginS = plan !== undefined && startUs > 0 ? plan.marginUs / 1e6 : undefined;
    const late = dueUs < nowUs || (marginS !== undefined && marginS < 0) || (plan !== undefined && !plan.feasible);
    return {job, dueUs, plan, startUs, marginS, late};
  }).sort((a, b) => Number(b.late) - Number(a.late) || a.dueUs - b.dueUs);
}

export type Tone = 'good' | 'bad' | 'unknown' | 'none';
export interface Verdict {
  tone: Tone;
  sentence: string;
  least?: Request;  // the one with the least margin
  late?: Request;   // the first that is late
  detail: string;
}

function whyLate(request: Request, nowUs: number): string {
  const {job, plan, dueUs, marginS} = request;
  const who = `${nameOf(job)} (${job.id})`;
  if (plan !== undefined && !plan.feasible) return `${who}: ${plan.refusal}.`;
  if (marginS !== undefined && marginS < 0) return `${who} would start ${duration(-marginS)} late.`;
  return `${who} should have started ${duration((nowUs - dueUs) / 1e6)} ago.`;
}

const all = (n: number, verb: [string, string]): string =>
  n === 1 ? `The deadline ${verb[0]} safe` : `All ${n} deadlines ${verb[1]} safe`;

// past: the controller is not heard any more, so this is what was.
export function verdictOf(requests: readonly Request[], nowUs: number, past: boolean): Verdict {
  if (requests.length === 0) return {tone: 'none', sentence: `No deadline ${past ? 'was' : 'is'} ahead`, detail: ''};
  const late = requests.filter(request => request.late);
  if (late[0] !== undefined) {
    const sentence = `${late.length} of ${requests.length} ${requests.length === 1 ? 'deadline' : 'deadlines'} ${past ? 'could' : 'can'}not be met`;
    return {tone: 'bad', sentence, late: late[0], detail: whyLate(late[0], nowUs)};
  }
  const unknown = requests.filter(request => request.marginS === undefined).length;
  if (unknown > 0) {
    const sentence = `${requests.length} ${requests.length === 1 ? 'deadline is' : 'deadlines are'} ahead`;
    return {tone: 'unknown', sentence, detail: `Whether ${unknown === 1 ? 'it is' : 'they are'} safe is not known here: the ${unknown === 1 ? 'plan is' : `plans of ${unknown} are`} not shown to you.`};
  }
  const least = requests.reduce((a, b) => ((b.marginS ?? 0) < (a.marginS ?? 0) ? b : a));
  return {tone: 'good', sentence: all(requests.length, past ? ['was', 'were'] : ['is', 'are']), least, detail: ''};
}
