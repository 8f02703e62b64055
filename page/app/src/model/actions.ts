// Orders by hand: which of them fit a job or a node as it is, what a plan of one says, and the command that is the same. What fits may
// be refused nevertheless; the controller says why.
import {ActionPlan, DeadlineChange, Event, Job, Node, SiteInfo, Tier} from '../../generated/api';
import {bytes, loss, names, plural} from '../text/amounts';
import {duration} from '../text/time';
import {hasEnded, isOnDemand, nameOf, phaseOf, userOf} from './jobs';

export type JobVerb = 'suspend' | 'checkpoint' | 'vacate' | 'migrate' | 'resume' | 'hold' | 'release' | 'kill';
export type NodeVerb = 'cordon' | 'uncordon';
export type Verb = JobVerb | NodeVerb;

export interface Action {
  verb: Verb;
  job?: number;
  node?: string;
  tier?: Tier;
  name: string;  // of the job or node
}

const PLANNED: readonly Verb[] = ['suspend', 'checkpoint', 'vacate', 'migrate', 'kill', 'cordon'];
export const hasPlan = ({verb}: Action): boolean => PLANNED.includes(verb);
export const takesTier = ({verb}: Action): boolean => verb === 'checkpoint' || verb === 'vacate';
export const verbText = (verb: Verb): string => `${verb[0]?.toUpperCase()}${verb.slice(1)}`;
export const subjectOf = ({job, name}: Action): string => (job === undefined ? `node ${name}` : name === `job ${job}` ? name : `${name} (job ${job})`);

type Reader = Pick<SiteInfo, 'user' | 'isOperator'> | undefined;

function fitting(job: Job): JobVerb[] {
  if (hasEnded(job) || job.state === 'killing') return [];
  const held: JobVerb[] = isOnDemand(job) ? [] : [job.heldBy === '' ? 'hold' : 'release'];
  switch (phaseOf(job.state)) {
    case 'waits': return [...held, 'kill'];
    case 'parked': return [...(job.heldBy === '' ? ['resume' as const] : []), ...held, 'kill'];
    case 'frozen': return ['resume', 'vacate', 'migrate', 'kill'];
    case 'returning': return ['kill'];
    case 'leaving': return ['kill'];
    default: return job.state === 'running' ? ['suspend', 'checkpoint', 'vacate', 'migrate', 'kill'] : ['kill'];
  }
}

// None where it is another's, whose orders are operators' to give.
export function actionsOn(job: Job, reader: Reader): Action[] {
  const user = reader?.user ?? '';
  if (reader === undefined || user === '' || !(reader.isOperator || userOf(job) === user)) return [];
  return fitting(job).filter(verb => verb !== 'release' || job.heldBy === 'user' || reader.isOperator).map(verb => ({verb, job: job.id, name: nameOf(job)}));
}

export function actionsOnNode(node: Node, reader: Reader): Action[] {
  if (reader?.isOperator !== true) return [];
  const isCordoned = node.state === 'cordoned' || node.state === 'drained';
  return [{verb: isCordoned ? 'uncordon' : 'cordon', node: node.name, name: node.name}];
}

// `sequence`: of the plan that it rests on; 0: of none.
export function commandOf({verb, job, node, tier}: Action, sequence: number): string {
  const of = job ?? (/^[\w.-]+$/.test(node ?? '') ? node : `'${(node ?? '').replaceAll('\'', '\'\\\'\'')}'`);
  return `sidingctl ${verb} ${of}${tier === 'LOCAL' ? ' --tier local' : ''}${sequence > 0 ? ` --if-unchanged ${sequence}` : ''}`;
}

export interface Step { at: string; text: string }
const jobs = (ids: readonly number[]): string => `${ids.length === 1 ? 'Job' : 'Jobs'} ${ids.join(', ')}`;

function begins({beginsUs, madeUs}: ActionPlan): string {
  return beginsUs > 0 ? `in ${duration((beginsUs - madeUs) / 1e6)}, when it has been saved` : 'at once';
}

// When each thing happens, and what that is.
export function stepsOf(plan: ActionPlan): Step[] {
  const {verb, doneUs, madeUs, nodes, target} = plan, here = names(nodes);
  if (verb === 'cordon') {
    const stay = plan.stay.length === 0 ? 'No job has it.' : `${jobs(plan.stay)} ${plan.stay.length === 1 ? 'stays there, and keeps it' : 'stay there, and keep it'}.`;
    return [{at: 'at once', text: `${here} takes nothing new. ${stay}`}];
  }
  const at = doneUs === 0 ? 'when is not known' : `in ${duration((doneUs - madeUs) / 1e6)}${verb === 'kill' ? ' at the latest' : ''}`;
  const image = `an image${plan.bytes > 0 ? ` of ${bytes(plan.bytes)}` : ''} is written to ${plan.tier === 'LOCAL' ? 'local' : 'shared'} storage`;
  const steps: Record<string, [string, string]> = {
    suspend: ['it is told to freeze', `it is frozen in the memory of ${here}, and its slots are free`],
    checkpoint: [image, 'that is whole, and it runs on'],
    vacate: [image, `it has left ${here}, and waits for nodes`],
    migrate: [image, `it runs again, on ${names(target)}`],
    kill: [nodes.length > 0 ? 'it is told to end' : 'it leaves the queue', 'it has ended, for good'],
  };
  const [first, last] = steps[verb] ?? ['', ''];
  return [{at: begins(plan), text: first}, {at, text: last}];
}

// What is lost, in words.
export function lossText({verb, lossNodeSeconds, doneUs}: ActionPlan): string {
  if (verb === 'cordon') return 'Nothing';
  if (verb === 'kill') return `${loss(lossNodeSeconds)} of work`;
  if (doneUs === 0) return 'Not known';
  return loss(lossNodeSeconds) + (verb === 'suspend' ? ', and until it is resumed' : verb === 'vacate' ? ', and while it waits for nodes' : '');
}

export interface DeadlineText { request: number; name: string; after: string; before: string; isWorse: boolean }
function startText(startUs: number, byUs: number): string {
  if (startUs === 0) return 'is not served';
  const margin = (byUs - startUs) / 1e6;
  return margin >= 0 ? `starts ${duration(margin)} before it` : `starts ${duration(-margin)} too late`;
}
// With the order, and as things are.
export function deadlineText({request, name, startByUs, beforeUs, afterUs}: DeadlineChange): DeadlineText {
  const fails = (us: number): boolean => us === 0 || us > startByUs;
  return {request, name, after: startText(afterUs, startByUs), before: startText(beforeUs, startByUs), isWorse: fails(afterUs) && !fails(beforeUs)};
}

// About those that are not listed, or that there are none.
export function otherDeadlines(plan: ActionPlan): string {
  const {deadlines, deadlinesLeftOut: out, verb, doneUs} = plan;
  if (deadlines.length === 0 && out === 0) return 'No deadline that you may see waits for nodes.';
  if (verb !== 'cordon' && doneUs === 0) return `What becomes of ${plural(out, 'deadline that waits', 'deadlines that wait')} for nodes is not known.`;
  return out > 0 ? `${plural(out, 'later deadline is', 'later deadlines are')} not worked out.` : '';
}

// Of what there is no plan.
const UNPLANNED: Record<string, string> = {
  hold: 'It gets no nodes until it is released.', release: 'It gets nodes again when it is its turn.', uncordon: 'The node gets jobs again.',
};
export const unplannedText = (verb: Verb, state: string): string =>
  UNPLANNED[verb] ?? (state === 'parked' ? 'It is tried again to restore it.' : 'It continues where it was frozen, if its nodes have room for it.');

// What a plan says now and did not say before, a line each.
export function changesBetween(before: ActionPlan, now: ActionPlan): string[] {
  const lines = (plan: ActionPlan): [string, string][] => [
    ...stepsOf(plan).map(({at, text}, i): [string, string] => [`step ${i + 1}`, `${at}: ${text}`]), ['lost', lossText(plan)],
    ...plan.deadlines.map(deadlineText).map(({request, name, after}): [string, string] => [`deadline of ${name || 'request'} (${request})`, after]), ['others', otherDeadlines(plan)],
  ];
  const old = new Map(lines(before)), fresh = new Map(lines(now));
  const changed = [...fresh].filter(([key, text]) => old.get(key) !== text).map(([key, text]) => `${key}: ${text || 'none'}${old.has(key) ? ` (was: ${old.get(key) || 'none'})` : ''}`);
  return [...changed, ...[...old.keys()].filter(key => !fresh.has(key)).map(key => `${key}: not any more`)];
}

// What has happened, of the controller's refusal of an order whose plan does not hold any more.
export function causeOf(refusal: string): string {
  const text = refusal.replace(/^what was planned does not hold any more, and nothing was done: /, '').replace(/[;:] ask for another (plan|one) \(--dry-run\)$/, '');
  return `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}`;
}

// The event that the order was, among those that are known: newest first. An order is refused if anything has happened to its job since
// the plan, so it is the first one behind it.
export function eventOf({job}: Action, sequence: number, events: readonly Event[]): Event | undefined {
  return events.filter(event => event.seq >= sequence && event.job === (job ?? 0) && event.kind !== 'note').at(-1);
}
