import assert from 'node:assert/strict';
import {test} from 'node:test';
import {decode} from '../../src/api/decode';
import {forecastOf} from '../../src/model/back';
import {densityOf, faceOf, inNaturalOrder} from '../../src/model/nodes';
import {outcomeOf} from '../../src/model/outcome';
import {plannedAhead} from '../../src/model/jobs';
import {countKept, keptOf} from '../../src/model/kept';
import {decidingPlan, insteadOf, methodText} from '../../src/model/plans';
import {requestsAhead, verdictOf} from '../../src/model/verdict';
import {cannot, job, node, plan, request, starts, step} from './make';

const NOW = 1000e6, noKeep = decode('ExplainResponse', {plans: [{kept: [{}]}]}).plans[0]!.kept[0]!;
const verdict = (jobs: ReturnType<typeof job>[], past = false) => verdictOf(requestsAhead(jobs, NOW), NOW, past);
const planned = (id: number, dueUs: number, startUs: number) => request(id, dueUs, starts(startUs, dueUs));

test('the verdict is of requests that have not started', () => {
  const started = request(1, NOW + 5e6, {state: 'running', firstStartedUs: NOW});
  assert.equal(verdict([started, job(2, 'pending')]).sentence, 'No deadline is ahead');
});

test('plans are asked of requests that wait and whose plans are shown, the most urgent one first', () => {
  const started = {...planned(3, NOW + 1e6, NOW), firstStartedUs: NOW};
  assert.deepEqual(plannedAhead([planned(1, NOW + 50e6, NOW), planned(2, NOW + 40e6, NOW), started, request(4, NOW + 5e6), job(5, 'pending')]).map(each => each.id), [2, 1]);
});

test('the least margin is named', () => {
  const both = verdict([planned(1, NOW + 50e6, NOW + 10e6), planned(2, NOW + 40e6, NOW + 31.5e6)]);
  assert.deepEqual([both.tone, both.sentence, both.least?.job.id, both.least?.marginS], ['good', 'All 2 deadlines are safe', 2, 8.5]);
  assert.equal(verdict([planned(1, NOW + 50e6, NOW)], true).sentence, 'The deadline was safe');
});

test('one that cannot be met comes first, with the reason', () => {
  const said = verdict([planned(1, NOW + 5e6, NOW), request(2, NOW + 9e6, cannot('n8 is away'))]);
  assert.deepEqual([said.tone, said.sentence, said.detail], ['bad', '1 of 2 deadlines cannot be met', 'job2 (2): n8 is away.']);
  assert.match(verdict([planned(1, NOW + 5e6, NOW + 36e6)]).detail, /would start 31 s late/);
  assert.match(verdict([request(1, NOW - 7e6)]).detail, /should have started 7 s ago/);
});

test('without their plans nothing is said of their safety', () => {
  const said = verdict([request(1, NOW + 5e6)]);
  assert.deepEqual([said.tone, said.sentence], ['unknown', '1 deadline is ahead']);
});

test('what is wrong with a node comes before what runs there', () => {
  const jobs = new Map([[1, job(1, 'running')], [2, request(2, 1, {state: 'running'})], [3, job(3, 'dumping')], [4, job(4, 'restoring')], [5, job(5, 'suspended')]]);
  const face = (on: number[], frozen: number[] = [], state = 'up') => faceOf(node('n', {jobs: on, suspendedJobs: frozen, state}), jobs);
  assert.deepEqual([face([1]), face([1, 2]), face([1, 3]), face([4]), face([], [5]), face([2], [5]), face([])], ['batch', 'od', 'leave', 'back', 'frozen', 'od', 'free']);
  assert.deepEqual([face([1], [], 'down'), face([], [], 'drained'), face([1], [], 'cordoned'), face([], [], 'lost')], ['down', 'cordoned', 'batch', 'lost']);
});

test('nodes are in the order in which people count', () => {
  assert.deepEqual(inNaturalOrder(['n10', 'n2', 'n1'].map(name => node(name))).map(each => each.name), ['n1', 'n2', 'n10']);
  assert.deepEqual([4, 16, 17, 200, 201].map(densityOf), ['cards', 'cards', 'names', 'names', 'tiles']);
});

test('what became of a deadline', () => {
  const kinds = [
    request(1, 50e6, {firstStartedUs: 14.6e6, state: 'running'}), request(1, 50e6, {firstStartedUs: 60e6, state: 'done'}), request(1, 50e6),
    request(1, 50e6, {state: 'failed', reason: 'too few nodes'}), request(1, 50e6, {state: 'cancelled'}), job(1, 'running'),
  ].map(outcomeOf);
  assert.deepEqual(kinds.map(each => each.kind), ['met', 'missed', 'ahead', 'refused', 'none', 'none']);
  assert.deepEqual([kinds[0]?.text, kinds[1]?.text, kinds[3]?.text], ['met, 35 s early', 'missed by 10 s', 'refused: too few nodes']);
});

test('a request that is planned again keeps the plan by which jobs went', () => {
  const went = plan({steps: [step(1)]}), after = plan(), refused = plan({feasible: false});
  assert.equal(decidingPlan([went, after]), went);
  assert.equal(decidingPlan([went, refused]), refused);
  assert.equal(decidingPlan([after]), after);
  assert.equal(decidingPlan([]), undefined);
});

test('the next best set is told by who comes in', () => {
  const chosen = plan({steps: [step(2), step(3)]});
  assert.deepEqual(insteadOf(chosen, {job: 2, feasible: true, jobs: [1, 3], lossNodeSeconds: 9, nextBest: true}), [1]);
  assert.equal(methodText(step(1, {method: 'CHECKPOINT', throughRam: true})), 'checkpoint through RAM');
});

test('jobs that were left alone are counted by rule, whether the plan names them or not', () => {
  const group = {rule: 'PROTECTED' as const, policyKey: 'preemptible', jobClass: 'campaign'};
  const keep = (id: number, more = {}) => ({...noKeep, job: id, rule: 'NOT_NEEDED' as const, policyKey: '', jobClass: '', ...more});
  const left = plan({kept: [keep(1), keep(2, group)], keptGroups: [{rule: 'NOT_NEEDED', policyKey: '', jobClass: '', jobs: 900}, {...group, jobs: 1}]});
  assert.deepEqual(keptOf(left).map(each => [each.text, each.count, each.named.map(named => named.job)]),
      [['not needed', 900, [1]], ['protected by the policy (preemptible of class campaign)', 1, [2]]]);
  assert.equal(countKept(left), 901);
});

test('a way back is said as it was worked out', () => {
  const because = {kind: 'WALLTIME' as const, job: 7, node: 'n1', image: false};
  const known = forecastOf(job(1, 'parked', {back: {predictedUs: 5, latestUs: 5, nodes: ['n1'], because}}));
  assert.deepEqual([known?.predictedUs, known?.because, known?.other], [5, 'when job 7 on n1 has ended by its walltime', 7]);
  const open = forecastOf(job(1, 'parked', {back: {predictedUs: 0, latestUs: 0, nodes: [], because: {...because, kind: 'NO_END', image: true}}}));
  assert.equal(open?.because, 'job 7 on n1, where alone it can go on, has no known end');
  assert.equal(forecastOf(job(1, 'parked')), undefined);
});
