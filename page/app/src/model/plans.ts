// What a plan says of its jobs.
import {Method, Plan, PlanStep, PlanWithout} from '../../generated/api';

const METHODS: Record<Method, string> = {METHOD_UNSPECIFIED: '', SUSPEND: 'suspend', CHECKPOINT: 'checkpoint', APP: 'own save', KILL: 'kill'};

export const methodText = (step: Pick<PlanStep, 'method' | 'throughRam' | 'early'>): string =>
  `${METHODS[step.method] ?? step.method}${step.throughRam ? ' through RAM' : ''}${step.early ? ' in advance' : ''}`;

// The newest plan in which that job makes way.
export const planWith = (plans: readonly Plan[], job: number): Plan | undefined =>
  [...plans].reverse().find(plan => plan.steps.some(step => step.job === job));

// A job may have two steps: an image in advance, and the one by which it leaves.
export const leavingStep = (plan: Plan, job: number): PlanStep | undefined =>
  [...plan.steps].reverse().find(step => step.job === job);

export const victims = (plan: Plan): PlanStep[] => {
  const last = new Map(plan.steps.map(step => [step.job, step]));
  return [...last.values()];
};
export const lossOf = (plan: Plan, job: number): number =>
  plan.steps.filter(step => step.job === job).reduce((sum, step) => sum + step.lossNodeSeconds, 0);

export const withoutJob = (plan: Plan, job: number): PlanWithout | undefined => plan.without.find(each => each.job === job);
export const nextBest = (plan: Plan): PlanWithout | undefined => plan.without.find(each => each.nextBest);

// Who makes way in the next best plan and does not in this one.
export function insteadOf(plan: Plan, other: PlanWithout): number[] {
  const here = new Set(plan.steps.map(step => step.job));
  return other.jobs.filter(job => !here.has(job));
}

// The plan by which jobs make way: the newest, or, where that finds all of them gone already, the last one that told any to go.
export function decidingPlan(plans: readonly Plan[]): Plan | undefined {
  const newest = plans.at(-1);
  if (newest === undefined || !newest.feasible || newest.steps.length > 0) return newest;
  return [...plans].reverse().find(plan => plan.feasible && plan.steps.length > 0) ?? newest;
}
