import assert from 'node:assert/strict';
import {test} from 'node:test';
import {bytes, loss, names, nodesText, times} from '../../src/text/amounts';
import {clock, distance, duration, moment, since} from '../../src/text/time';

const AT = Date.UTC(2026, 10, 27, 14, 24, 30, 560) * 1000;

test('a clock is of UTC, and has tenths where they are asked for', () => {
  assert.equal(clock(AT), '14:24:30');
  assert.equal(clock(AT, true), '14:24:30.5');
});

test('a moment of another day, or another year, says so', () => {
  assert.equal(moment(AT, AT + 3600e6), '14:24:30');
  assert.equal(moment(AT, AT + 86400e6), '27 Nov 14:24:30');
  assert.equal(moment(AT, AT + 366 * 86400e6), '27 Nov 2026 14:24:30');
});

test('durations have the two units that matter', () => {
  const texts: [number, string][] = [
    [0, '0 s'], [0.0004, '1 ms'], [0.35, '350 ms'], [0.9996, '1 s'], [8.5, '8.5 s'], [9.98, '10 s'], [19, '19 s'], [59.96, '1 min'], [235, '3 min 55 s'],
    [3600, '1 h'], [7500, '2 h 5 min'], [86400, '1 d'], [100000, '1 d 3 h'], [-31, '\u221231 s'],
  ];
  for (const [seconds, text] of texts) assert.equal(duration(seconds), text);
});

test('a distance is in whole seconds, and says on which side', () => {
  assert.equal(distance(AT + 20.9e6, AT), 'in 20 s');
  assert.equal(distance(AT - 360e6, AT), '6 min ago');
  assert.equal(distance(AT + 0.4e6, AT), 'now');
  assert.equal(since(AT + 5e6, AT), '0 s');
});

test('losses above two node-hours are in node-hours', () => {
  assert.equal(loss(83), '83.0 node-s');
  assert.equal(loss(2698), '2,698 node-s');
  assert.equal(loss(7200), '2.0 node-h');
});

test('bytes have the unit that leaves three digits', () => {
  assert.equal(bytes(0), '0 B');
  assert.equal(bytes(1536), '1.5 KiB');
  assert.equal(bytes(1023.99 * 1024), '1.0 MiB');
  assert.equal(bytes(410 * 1024 ** 3), '410 GiB');
});

test('nothing is so many times nothing', () => {
  assert.equal(times(508.6, 181.4), '2.8 times');
  assert.equal(times(5, 0), '');
});

test('names that count up are a range', () => {
  assert.equal(names([]), '');
  assert.equal(names(['n1', 'n2']), 'n1 and n2');
  assert.equal(names(['n1', 'n2', 'n3', 'x']), 'n1 to n3 and x');
  assert.equal(names(['a1', 'a3', 'a5', 'a7', 'a9']), 'a1, a3, a5 and others, 5 nodes');
  assert.equal(nodesText(1), '1 node');
});
