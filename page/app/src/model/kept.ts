// The jobs that a plan leaves alone, together where the same rule decided. Of a large group the plan names some only.
import {KeepRule, KeptGroup, Plan, PlanKeep} from '../../generated/api';

export interface Kept {
  text: string;   // of the rule
  rule: string;   // its name in the address of the policy; empty: none decided
  count: number;  // of all in the group
  named: readonly PlanKeep[];
}

const RULES: Record<KeepRule, string> = {
  KEEP_RULE_UNSPECIFIED: 'for other reasons', ON_DEMAND: 'deadline jobs themselves', LEAVING: 'leaving already', NOT_PREEMPTIBLE: 'not preemptible: their users allow no method',
  CANNOT_LEAVE: 'what they allow does not work for them', PROTECTED: 'protected by the policy', MAX_PREEMPTIONS: 'have made way as often as they may',
  MIN_RUNTIME: 'have not run for long enough', COOLDOWN: 'made way not long ago', METHOD_PAUSED: 'what could be done in time has failed, and is tried again later',
  NO_ROOM: 'no room for their images', NOT_MEASURED: 'how long they would take is not known', ELSEWHERE: 'on no node that the request could use',
  TOO_SLOW: 'could not be gone in time', AWAITED: 'will have ended by themselves', NOT_NEEDED: 'not needed', REFUSED: 'nothing is touched, as the request is refused', BEING_SAVED: 'a checkpoint of them is being made',
};

function ruleText({rule, policyKey, jobClass}: KeptGroup): string {
  const text = RULES[rule] ?? rule;  // one of tomorrow
  return policyKey === '' ? text : `${text} (${policyKey} of ${jobClass === '' ? 'the policy' : `class ${jobClass}`})`;
}

const isIn = (keep: PlanKeep, group: KeptGroup): boolean =>
  keep.rule === group.rule && keep.policyKey === group.policyKey && keep.jobClass === group.jobClass;

export const keptOf = (plan: Plan): Kept[] => plan.keptGroups.map(group =>
  ({text: ruleText(group), rule: group.policyKey === '' ? '' : `${group.policyKey}${group.jobClass === '' ? '' : `/${group.jobClass}`}`, count: group.jobs, named: plan.kept.filter(keep => isIn(keep, group))}));

export const countKept = (plan: Plan): number => plan.keptGroups.reduce((sum, group) => sum + group.jobs, 0);
