import assert from 'node:assert/strict';
import {test} from 'node:test';
import {wayTo} from '../../src/model/active';

const active = (page: string, isHere: boolean) => wayTo({name: 'pid 9 on head1', host: 'head1', page, isHere});

test('a page on this machine is a link', () => {
  assert.deepEqual(active('http://127.0.0.1:7480', true), {address: 'http://127.0.0.1:7480/', tunnel: ''});
});
test('one on the loopback of another machine needs a tunnel', () => {
  assert.deepEqual(active('http://127.0.0.1:7480', false), {address: 'http://127.0.0.1:7480/', tunnel: 'ssh -L 7480:127.0.0.1:7480 head1'});
  assert.equal(active('http://[::1]:7480', false).tunnel, 'ssh -L 7480:[::1]:7480 head1');
});
test('one that others reach needs none', () => {
  assert.deepEqual(active('https://head1.example:7480', false), {address: 'https://head1.example:7480/', tunnel: ''});
});
test('where there is none there is no way', () => assert.deepEqual(active('', true), {address: '', tunnel: ''}));
