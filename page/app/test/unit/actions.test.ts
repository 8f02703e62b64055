import assert from 'node:assert/strict';
import {test} from 'node:test';
import {ActionPlan, Job} from '../../generated/api';
import {decode} from '../../src/api/decode';
import {Action, actionsOn, causeOf, actionsOnNode, changesBetween, commandOf, deadlineText, eventOf, lossText, otherDeadlines, stepsOf, subjectOf} from '../../src/model/actions';
import {event, job, node, request} from './make';

const OPERATOR = {user: 'root', isOperator: true}, ADA = {user: 'ada', isOperator: false}, BOB = {user: 'bob', isOperator: false};
const plan = (more: Partial<ActionPlan>): ActionPlan => ({...decode('ActionPlan', {}), sequence: 7, madeUs: 100e6, nodes: ['n1'], verb: 'suspend', ...more});
const verbs = (of: Job, reader = OPERATOR): string => actionsOn(of, reader).map(({verb}) => verb).join(' ');

test('what may be ordered is what its state allows', () => {
  assert.equal(verbs(job(1, 'running')), 'suspend checkpoint vacate migrate kill');
  assert.equal(verbs(job(1, 'suspended')), 'resume vacate migrate kill');
  assert.equal(verbs(job(1, 'pending')), 'hold kill');
  assert.equal(verbs(job(1, 'pending', {heldBy: 'user'})), 'release kill');
  assert.equal(verbs(job(1, 'parked')), 'resume hold kill');
  assert.equal(verbs(job(1, 'parked', {heldBy: 'operator'})), 'release kill');
  assert.equal(verbs(job(1, 'restoring')), 'kill');
  assert.equal(verbs(request(1, 9e6)), 'kill');
  for (const over of ['done', 'failed', 'cancelled', 'killing']) assert.equal(verbs(job(1, over)), '');
});

test('orders are for its user and for operators', () => {
  assert.equal(verbs(job(1, 'pending'), ADA), 'hold kill');
  assert.equal(verbs(job(1, 'pending'), BOB), '');
  assert.equal(verbs(job(1, 'pending', {}, {user: ''}), {user: '', isOperator: false}), '');
  assert.deepEqual(actionsOn(job(1, 'pending'), undefined), []);
  assert.equal(verbs(job(1, 'pending', {heldBy: 'operator'}), ADA), 'kill', 'only operators release what an operator holds');
});

test('nodes are operators\'', () => {
  assert.deepEqual(actionsOnNode(node('n1'), ADA), []);
  assert.deepEqual(actionsOnNode(node('n1'), OPERATOR).map(({verb}) => verb), ['cordon']);
  for (const state of ['cordoned', 'drained']) assert.deepEqual(actionsOnNode(node('n1', {state}), OPERATOR).map(({verb}) => verb), ['uncordon']);
});

test('the command is the order, with its plan', () => {
  const of = (more: Partial<Action>): Action => ({verb: 'kill', name: 'x', ...more});
  assert.equal(commandOf(of({job: 7}), 0), 'sidingctl kill 7');
  assert.equal(commandOf(of({verb: 'vacate', job: 7, tier: 'LOCAL'}), 12), 'sidingctl vacate 7 --tier local --if-unchanged 12');
  assert.equal(commandOf(of({verb: 'cordon', node: 'n1.site'}), 3), 'sidingctl cordon n1.site --if-unchanged 3');
  assert.equal(commandOf(of({verb: 'cordon', node: 'a\'; rm b'}), 0), 'sidingctl cordon \'a\'\\\'\'; rm b\'');
  assert.deepEqual([subjectOf(of({job: 7, name: 'heat'})), subjectOf(of({job: 7, name: 'job 7'})), subjectOf(of({node: 'n1', name: 'n1'}))], ['heat (job 7)', 'job 7', 'node n1']);
});

test('a plan says what happens when', () => {
  assert.deepEqual(stepsOf(plan({doneUs: 100.5e6})), [{at: 'at once', text: 'it is told to freeze'}, {at: 'in 500 ms', text: 'it is frozen in the memory of n1, and its slots are free'}]);
  assert.deepEqual(stepsOf(plan({verb: 'vacate', beginsUs: 102e6, doneUs: 103e6, bytes: 2048, tier: 'SHARED'})), [
    {at: 'in 2 s, when it has been saved', text: 'an image of 2.0 KiB is written to shared storage'}, {at: 'in 3 s', text: 'it has left n1, and waits for nodes'}]);
  assert.equal(stepsOf(plan({verb: 'migrate', target: ['n2']}))[1]?.at, 'when is not known');
  assert.equal(stepsOf(plan({verb: 'kill', doneUs: 130e6}))[1]?.at, 'in 30 s at the latest');
  assert.equal(stepsOf(plan({verb: 'cordon', stay: [3, 4]}))[0]?.text, 'n1 takes nothing new. Jobs 3, 4 stay there, and keep it.');
  assert.equal(stepsOf(plan({verb: 'cordon', stay: [3]}))[0]?.text, 'n1 takes nothing new. Job 3 stays there, and keeps it.');
});

test('what is lost is said, and what nobody knows', () => {
  assert.equal(lossText(plan({doneUs: 1, lossNodeSeconds: 2})), '2.0 node-s, and until it is resumed');
  assert.equal(lossText(plan({lossNodeSeconds: 2})), 'Not known');
  assert.equal(lossText(plan({verb: 'kill', lossNodeSeconds: 2})), '2.0 node-s of work');
  assert.equal(otherDeadlines(plan({})), 'No deadline that you may see waits for nodes.');
  assert.equal(otherDeadlines(plan({deadlinesLeftOut: 2})), 'What becomes of 2 deadlines that wait for nodes is not known.');
  assert.equal(otherDeadlines(plan({doneUs: 1, deadlinesLeftOut: 1})), '1 later deadline is not worked out.');
});

test('a deadline that would be missed is told from one that is already', () => {
  const change = (beforeUs: number, afterUs: number) => deadlineText({request: 8, name: 'storm', startByUs: 100e6, beforeUs, afterUs});
  assert.deepEqual(change(90e6, 110e6), {request: 8, name: 'storm', before: 'starts 10 s before it', after: 'starts 10 s too late', isWorse: true});
  assert.equal(change(90e6, 0).after, 'is not served');
  assert.equal(change(0, 0).isWorse, false);
});

test('of two plans it is told what differs', () => {
  const deadline = {request: 8, name: 'storm', startByUs: 100e6, beforeUs: 90e6, afterUs: 90e6};
  const before = plan({doneUs: 101e6, lossNodeSeconds: 2, deadlines: [deadline]});
  assert.deepEqual(changesBetween(before, {...before, sequence: 9}), []);
  assert.deepEqual(changesBetween(before, {...before, lossNodeSeconds: 3, deadlines: [{...deadline, afterUs: 105e6}]}), [
    'lost: 3.0 node-s, and until it is resumed (was: 2.0 node-s, and until it is resumed)', 'deadline of storm (8): starts 5 s too late (was: starts 10 s before it)']);
  assert.deepEqual(changesBetween(before, {...before, deadlines: []}).at(-1), 'deadline of storm (8): not any more');
});

test('why an order is refused is told without what the command line would do', () => {
  assert.equal(causeOf('what was planned does not hold any more, and nothing was done: job 1: running (event 9); ask for another plan (--dry-run)'), 'Job 1: running (event 9)');
  assert.equal(causeOf('job 1 is done: it has ended'), 'Job 1 is done: it has ended');
});

test('the event that an order was is the first of its job behind the plan', () => {
  const events = [event(9, 1, 'frozen'), event(8, 1, 'order-suspend'), event(7, 1, 'note'), event(7, 2, 'started'), event(6, 1, 'started')];
  assert.equal(eventOf({verb: 'suspend', job: 1, name: ''}, 7, events)?.seq, 8);
  assert.equal(eventOf({verb: 'suspend', job: 3, name: ''}, 7, events), undefined);
  assert.equal(eventOf({verb: 'cordon', node: 'n1', name: 'n1'}, 7, [event(8, 0, 'cordoned'), event(7, 2, 'started')])?.seq, 8);
});
