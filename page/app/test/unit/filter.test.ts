import assert from 'node:assert/strict';
import {test} from 'node:test';
import {find} from '../../src/model/find';
import {parseFilter, toggleState} from '../../src/model/filter';
import {job, node, request} from './make';

const JOBS = [
  job(17, 'parked', {}, {name: 'cfd-wing', user: 'okoro'}), job(170, 'running', {nodes: ['n1']}, {name: 'train'}), job(3, 'done', {preemptions: 1}, {name: 'Solve'}), request(8, 1),
];
const found = (text: string): number[] => JOBS.filter(parseFilter(text).test).map(each => each.id);

test('words are in the name, the user, or begin the number', () => {
  assert.deepEqual(found(''), [17, 170, 3, 8]);
  assert.deepEqual(found('17'), [17, 170]);
  assert.deepEqual(found('solv'), [3]);
  assert.deepEqual(found('okoro wing'), [17]);
});

test('keys are exact, and all of them have to fit', () => {
  assert.deepEqual(found('user:ada'), [170, 3, 8]);
  assert.deepEqual(found('state:parked,running'), [17, 170]);
  assert.deepEqual(found('user:ada state:running node:n1'), [170]);
  assert.deepEqual(found('is:on-demand'), [8]);
  assert.deepEqual(found('is:preempted'), [3]);
});

test('what cannot be read is said, and left out', () => {
  assert.match(parseFilter('state:sleeping').problem, /"sleeping" is no state: pending, .* or cancelled/);
  assert.match(parseFilter('owner:me').problem, /"owner:" is not known/);
  assert.match(parseFilter('user:').problem, /user: is followed by/);
  assert.deepEqual(found('is:odd cfd'), [17]);
});

test('jobs that have ended are wanted by their states alone', () => {
  for (const text of ['state:done', 'state:running,failed', 'is:ended']) assert.ok(parseFilter(text).wantsEnded, text);
  for (const text of ['', 'done', 'state:running', 'user:failed']) assert.ok(!parseFilter(text).wantsEnded, text);
});

test('a state is put into the text, and taken out again', () => {
  assert.equal(toggleState('user:ada', 'parked'), 'user:ada state:parked');
  assert.equal(toggleState('state:running user:ada', 'parked'), 'user:ada state:parked');
  assert.equal(toggleState('user:ada state:parked', 'parked'), 'user:ada');
});

test('find: the number that is meant comes first, then the beginnings of names', () => {
  const ids = (text: string) => find(text, JOBS, [node('train-node')]).map(hit => hit.id || hit.name);
  assert.deepEqual(ids('17'), [17, 170]);
  assert.deepEqual(ids('train'), [170, 'train-node']);
  assert.equal(find('8', JOBS, [])[0]?.kind, 'request');
});

test('find: a number that is not there is asked of the controller', () => {
  assert.deepEqual(find('4711', JOBS, []).map(hit => [hit.kind, hit.id]), [['number', 4711]]);
  assert.deepEqual(find('0', JOBS, []).filter(hit => hit.kind === 'number'), []);
});
