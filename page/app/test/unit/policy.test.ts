import assert from 'node:assert/strict';
import {test} from 'node:test';
import {KeptGroup, PolicyInForce} from '../../generated/api';
import {keptOf} from '../../src/model/kept';
import {lineNamed, linesOf} from '../../src/model/policy';
import {howItWent} from '../../src/model/story';
import {movesOf} from '../../src/model/moves';
import {durationAfter} from '../../src/text/time';
import {withEvents, NOTHING} from '../../src/live/state';
import {event, plan} from './make';

const POLICY: PolicyInForce = {
  yaml: 'margin: 2s\nmin_runtime: 5m\nclasses:\n  - {name: campaign, match: {account: [climate]}, methods: []}\n  - {name: "night shift", cooldown: 1h}\noperators: [root]\n',
  defaults: 'margin: 1s\nmin_runtime: 0s\noperators: [root]\n', file: 'p.yaml', loadedUs: 1, problem: '',
};
const group = (more: Partial<KeptGroup>): KeptGroup => ({rule: 'MIN_RUNTIME', policyKey: 'min_runtime', jobClass: '', jobs: 3, ...more});

test('a line knows its key, its class, and what it says without a file', () => {
  const lines = linesOf(POLICY, [], []);
  assert.deepEqual(lines.map(line => [line.number, line.key, line.jobClass, line.normally]), [
    [1, 'margin', '', '1s'], [2, 'min_runtime', '', '0s'], [3, 'classes', '', ''], [4, 'classes', 'campaign', undefined], [5, 'classes', 'night shift', undefined],
    [6, 'operators', '', undefined]]);
});

test('a controller of another version says nothing of the defaults, and then nothing is said of them here', () => {
  assert.ok(linesOf({...POLICY, defaults: ''}, [], []).every(line => line.normally === undefined));
});

test('a line knows the newest change by which it came, and the jobs that it leaves alone', () => {
  const changes = [event(9, 0, 'policy-changed', {by: 'ada', changes: ['-margin: 1s', '+margin: 2s']}), event(5, 0, 'policy-changed', {changes: ['+margin: 2s']}), event(4, 0, 'note', {changes: ['+operators: [root]']})];
  const plans = [plan({request: 7, keptGroups: [group({}), group({rule: 'NOT_NEEDED', policyKey: '', jobs: 50})]}), plan({request: 8, keptGroups: [group({policyKey: 'methods', jobClass: 'campaign', jobs: 2})]})];
  const lines = linesOf(POLICY, changes, plans);
  assert.deepEqual(lines.map(line => line.changed?.seq), [9, undefined, undefined, undefined, undefined, undefined]);
  assert.deepEqual(lines.map(line => [line.leftAlone, line.requests]), [[0, []], [3, [7]], [0, []], [2, [8]], [0, []], [0, []]]);
});

test('a line is named by its number, its key or its class', () => {
  const lines = linesOf(POLICY, [], []);
  assert.deepEqual(['L2', 'min_runtime', 'methods/campaign', 'cooldown/night shift', 'L7', 'none', '', 'methods/none'].map(name => lineNamed(lines, name)), [2, 2, 4, 5, 0, 0, 0, 0]);
});

test('a reason leads to the rule of the policy that decided', () => {
  const kept = keptOf(plan({keptGroups: [group({}), group({jobClass: 'campaign'}), group({rule: 'NOT_NEEDED', policyKey: ''})]}));
  assert.deepEqual(kept.map(each => each.rule), ['min_runtime', 'min_runtime/campaign', '']);
});

test('a changed policy is read again, with all that it may show', () => {
  assert.equal(withEvents({...NOTHING, firstSeq: 1}, [event(1, 0, 'policy-changed')], 5).allStaleSince, 5);
});

test('what a plan found free before its orders were given is free at once, and not before', () => {
  assert.equal(durationAfter(10e6, 10e6 - 3000), 'at once');
  assert.equal(durationAfter(10e6, 13e6), '3 s');
  const [move] = movesOf([event(1, 1, 'order-suspend', {request: 7, predictedUs: 1e6 - 3000}), event(2, 1, 'frozen')]);
  assert.deepEqual(howItWent(move!), ['Its nodes were free after 1 s, predicted at once.']);
});
