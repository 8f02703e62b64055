// Values of the API for tests: as the controller would leave them where a test says nothing.
import {Event, Job, JobSpec, Node, Plan, PlanStep, PlanSummary} from '../../generated/api';
import {decode} from '../../src/api/decode';

type Part<T> = Partial<T>;
const none = decode('ListJobsResponse', {jobs: [{spec: {}}]}).jobs[0]!;
const noNode = decode('ListNodesResponse', {nodes: [{}]}).nodes[0]!;
const noSummary = decode('ListJobsResponse', {jobs: [{plan: {}}]}).jobs[0]!.plan!;
const noPlan = decode('ExplainResponse', {plans: [{steps: [{}]}]}).plans[0]!;

export const job = (id: number, state: string, more: Part<Job> = {}, spec: Part<JobSpec> = {}): Job =>
  ({...none, id, state, ...more, spec: {...none.spec!, name: `job${id}`, user: 'ada', nodes: 1, ...spec}});
export const request = (id: number, startByUs: number, more: Part<Job> = {}): Job => job(id, more.state ?? 'pending', more, {onDemand: true, startByUs});
export const node = (name: string, more: Part<Node> = {}): Node => ({...noNode, name, state: 'up', ...more});
export const event = (seq: number, about: number, kind: string, more: Part<Event> = {}): Event =>
  ({...decode('Event', {}), seq, atUs: seq * 1e6, job: about, kind, ...more});
export const plan = (more: Part<Plan> = {}): Plan => ({...noPlan, feasible: true, exact: true, steps: [], ...more});
export const step = (about: number, more: Part<PlanStep> = {}): PlanStep => ({...noPlan.steps[0]!, job: about, ...more});
// In the plan of request(): when it would start, of a deadline.
export const starts = (predictedStartUs: number, startByUs: number): {plan: PlanSummary} =>
  ({plan: {...noSummary, feasible: true, predictedStartUs, marginUs: startByUs - predictedStartUs}});
export const cannot = (refusal: string): {plan: PlanSummary} => ({plan: {...noSummary, refusal}});
