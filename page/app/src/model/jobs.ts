// What the states of jobs mean to the page.
import {Job, JobSpec} from '../../generated/api';

// waits: has not begun; leaving: is being taken off its nodes; frozen: in RAM on its nodes; parked: off them, to be restored;
// returning: is being restored or thawed.
export type Phase = 'waits' | 'runs' | 'leaving' | 'frozen' | 'parked' | 'returning' | 'ended';

const PHASES: Record<string, Phase> = {
  pending: 'waits', starting: 'runs', running: 'runs', suspending: 'leaving', suspended: 'frozen', resuming: 'returning',
  dumping: 'leaving', committing: 'leaving', saving: 'leaving', parked: 'parked', restoring: 'returning', killing: 'leaving',
  done: 'ended', failed: 'ended', cancelled: 'ended',
};
// In the order of a job's life, as lists of counts have them.
export const STATES: readonly string[] = Object.keys(PHASES);
const NO_SPEC: Partial<JobSpec> = {};

export const phaseOf = (state: string): Phase => PHASES[state] ?? 'waits';
export const hasEnded = (job: Job): boolean => phaseOf(job.state) === 'ended';
export const isOnDemand = (job: Job): boolean => job.spec?.onDemand ?? false;
export const nameOf = (job: Job): string => (job.spec ?? NO_SPEC).name || `job ${job.id}`;
export const userOf = (job: Job): string => (job.spec ?? NO_SPEC).user ?? '';
export const sizeOf = (job: Job): number => job.spec?.nodes ?? job.nodes.length;
// 0: it has none.
export const deadlineOf = (job: Job): number => (isOnDemand(job) ? job.spec?.startByUs ?? 0 : 0);

// Its state will be another one soon, and its progress is worth a look every moment.
export function isInMotion(job: Job): boolean {
  const phase = phaseOf(job.state);
  return phase === 'leaving' || phase === 'returning' || job.state === 'starting';
}

// It is off its nodes because of others, or on its way there or back.
export function isAway(job: Job): boolean {
  const phase = phaseOf(job.state);
  return phase === 'frozen' || phase === 'parked' || ((phase === 'leaving' || phase === 'returning') && job.madeWayFor !== 0);
}

// The request waits for its nodes: it has a deadline, and has not started yet.
export const waitsForDeadline = (job: Job): boolean => deadlineOf(job) > 0 && job.firstStartedUs === 0 && !hasEnded(job);
// Those whose plans are shown to this reader, the most urgent ones first.
export const plannedAhead = (jobs: Iterable<Job>): Job[] =>
  [...jobs].filter(job => waitsForDeadline(job) && job.plan !== undefined).sort((a, b) => deadlineOf(a) - deadlineOf(b));

export function countByState(jobs: Iterable<Job>): Map<string, number> {
  const counts = new Map<string, number>(STATES.map(state => [state, 0]));
  for (const job of jobs) counts.set(job.state, (counts.get(job.state) ?? 0) + 1);
  return new Map([...counts].filter(([, n]) => n > 0));
}

// Why it is as it is, in the controller's words.
export function whyText(job: Job): string {
  return [job.reason, job.waitsFor, job.heldBy === '' ? '' : `held by ${job.heldBy === 'user' ? 'its user' : 'an operator'}`]
      .filter(text => text !== '').join('; ');
}
