import assert from 'node:assert/strict';
import {test} from 'node:test';
import {ApiError} from '../../src/api/client';
import {Asker, BUSY_MS, PAUSE_MS} from '../../src/live/asker';
import {EMPTY, afterText, commandOf, durationUs, formText, momentUs, otherDeadlines, questionOf, readForm, requestOf, sizeOf} from '../../src/model/whatif';
import {plan} from './make';

const NOW = Date.UTC(2026, 10, 27, 14, 24, 30) * 1000;

test('durations and sizes are read as sidingctl reads them', () => {
  assert.deepEqual(['90s', '1m30s', '2h', '250ms', '1d', '1.5h'].map(durationUs), [90e6, 90e6, 7200e6, 250e3, 86400e6, 5400e6]);
  assert.deepEqual(['', '5', 's', '5x', '-5s', '5s!'].map(durationUs), [undefined, undefined, undefined, undefined, undefined, undefined]);
  assert.deepEqual(['512MiB', '2GB', '4096', '1.5GiB'].map(sizeOf), [512 * 2 ** 20, 2e9, 4096, 1.5 * 2 ** 30]);
  assert.deepEqual(['', 'GB', '2G', '2iB', '2 apples'].map(sizeOf), [undefined, undefined, undefined, undefined, undefined]);
});

test('a moment is from now on, the next one of that clock in UTC, or written out', () => {
  assert.equal(momentUs('+30s', NOW), NOW + 30e6);
  assert.equal(momentUs('14:30', NOW), Date.UTC(2026, 10, 27, 14, 30) * 1000);
  assert.equal(momentUs('14:24', NOW), Date.UTC(2026, 10, 28, 14, 24) * 1000);
  assert.equal(momentUs('2026-11-27T15:00:00+01:00', NOW), Date.UTC(2026, 10, 27, 14) * 1000);
  for (const text of ['', 'soon', '30s', '24:00', '12:60', '+', '2026-11-27']) assert.equal(momentUs(text, NOW), undefined, text);
});

test('the address has what is not as in an empty form, and comes back as it went', () => {
  assert.equal(formText(EMPTY), '');
  const form = {...EMPTY, nodes: '12', by: '+20s', labels: 'a=b&c d=50%'};
  assert.equal(formText(form), 'nodes=12&by=+20s&labels=a=b%26c d=50%25');
  assert.deepEqual(readForm(formText(form)), form);
  assert.deepEqual(readForm('x=1&nodes&by=%'), {...EMPTY, by: '%'});
});

test('what cannot be read is said of its field, and then nothing is asked', () => {
  const {request, problems} = requestOf({...EMPTY, nodes: '0', slots: 'x', gpus: '-1', memory: '2 apples', by: 'soon', walltime: '5', labels: 'account'}, NOW);
  assert.equal(request, undefined);
  assert.deepEqual(Object.keys(problems).sort(), ['by', 'gpus', 'labels', 'memory', 'nodes', 'slots', 'walltime']);
});

test('a request is asked by the numbers of the API', () => {
  const form = {...EMPTY, nodes: '2', gpus: '4', memory: '1KiB', by: '+20s', walltime: '1m', labels: 'account=x  qos=a&b'};
  assert.equal(questionOf(requestOf(form, NOW).request!), `nodes=2&slots=1&gpus=4&memory=1024&start_by_us=${NOW + 20e6}&walltime_us=60000000&label=account%3Dx&label=qos%3Da%26b`);
  assert.equal(questionOf(requestOf({...EMPTY, by: ''}, NOW).request!), 'nodes=1&slots=1&start_by_us=earliest');
});

test('the command submits it, and a clock of UTC is written out in it', () => {
  assert.equal(commandOf({...EMPTY, nodes: '2', by: '14:30', gpus: '4', labels: 'account=it\'s'}, NOW),
      'sidingctl submit --nodes 2 --slots 1 --gpus 4 --start-by 2026-11-27T14:30:00Z --label \'account=it\'\\\'\'s\' -- COMMAND');
  assert.equal(commandOf({...EMPTY, by: '+20s'}, NOW), 'sidingctl submit --nodes 1 --slots 1 --start-by +20s -- COMMAND');
});

test('later deadlines are asked for where something is lost', () => {
  const lost = plan({startByUs: NOW + 20e6, lossNodeSeconds: 9}), form = {...EMPTY, by: '+20s'};
  assert.deepEqual(otherDeadlines(form, lost, NOW), ['earliest', '+30s', '+1m', '+2m', '+5m', '+10m']);
  assert.deepEqual(otherDeadlines({...form, by: 'earliest'}, lost, NOW), ['+30s', '+1m', '+2m', '+5m', '+10m']);
  assert.deepEqual(otherDeadlines(form, {...lost, lossNodeSeconds: 0}, NOW), ['earliest']);
  assert.deepEqual(otherDeadlines(form, plan({feasible: false, startByUs: NOW + 20e6, earliestUs: NOW + 3600e6}), NOW).slice(0, 2), ['earliest', '+4h']);
  assert.deepEqual([10, 60, 7200, 172800].map(afterText), ['+10s', '+1m', '+2h', '+2d']);
});

// ---- Asker ----

type Act = (asked: string[], asker: Asker<string, string>, answer: (text: string) => Promise<void>, told: string[], tick: (ms: number) => Promise<void>) => Promise<void>;
const settled = async (): Promise<void> => { for (let i = 0; i < 10; ++i) await Promise.resolve(); };

// Time passes when the test says so.
class Clock {
  private readonly real = {setTimeout, clearTimeout};
  private readonly waiting = new Map<number, [number, () => void]>();
  private nowMs = 0;
  private last = 0;

  constructor() {
    Object.assign(globalThis, {
      setTimeout: (act: () => void, ms: number) => { this.waiting.set(++this.last, [this.nowMs + ms, act]); return this.last; },
      clearTimeout: (id: number) => this.waiting.delete(id),
    });
  }
  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    for (const [id, [atMs, act]] of [...this.waiting]) {
      if (atMs > this.nowMs) continue;
      this.waiting.delete(id);
      act();
    }
    await settled();
  }
  end(): void {
    Object.assign(globalThis, this.real);
  }
}

const play = (name: string, act: Act): void => {
  test(name, async () => {
    const clock = new Clock();
    const asked: string[] = [], told: string[] = [];
    let resolve: (text: string) => void = () => undefined, reject: (error: ApiError) => void = () => undefined;
    const asker = new Asker<string, string>({
      ask: question => { asked.push(question); return new Promise((yes, no) => { resolve = yes; reject = no; }); },
      more: question => [`${question} later`, `${question} much later`],
      answered: (question, answer, first) => told.push(`${question}: ${answer}${first ? '' : ', further'}`),
      failed: (question, {code}) => told.push(`${question}: ${code}`),
    });
    const answer = async (text: string): Promise<void> => {
      if (/^[A-Z_]+$/.test(text)) reject(new ApiError(text, ''));
      else resolve(text);
      await settled();
    };
    await act(asked, asker, answer, told, ms => clock.pass(ms)).finally(() => clock.end());
  });
};

play('it is asked a while after the last key', async (asked, asker, _answer, _told, tick) => {
  for (const text of ['1', '12', '123']) {
    asker.want(text);
    await tick(PAUSE_MS - 1);
  }
  assert.deepEqual(asked, []);
  await tick(1);
  assert.deepEqual(asked, ['123']);
});

play('one question is under way at most, and an answer to an earlier one is for nobody', async (asked, asker, answer, told, tick) => {
  asker.want('1');
  await tick(PAUSE_MS);
  asker.want('12');
  await tick(PAUSE_MS);
  assert.deepEqual(asked, ['1']);
  await answer('one');
  assert.deepEqual([asked, told], [['1', '12'], []]);
  await answer('twelve');
  assert.deepEqual(told, ['12: twelve']);
});

play('further questions come one at a time, as long as nothing new is wanted', async (asked, asker, answer, told, tick) => {
  asker.want('1');
  await tick(PAUSE_MS);
  await answer('one');
  assert.deepEqual(asked, ['1', '1 later']);
  await answer('less');
  assert.deepEqual(asked.at(-1), '1 much later');
  asker.want('2');
  await answer('least');
  await tick(PAUSE_MS);
  assert.deepEqual([asked.at(-1), told], ['2', ['1: one', '1 later: less, further']]);
});

play('where the server is asked too much it is asked again, and other errors are told once', async (asked, asker, answer, told, tick) => {
  asker.want('1');
  await tick(PAUSE_MS);
  await answer('RESOURCE_EXHAUSTED');
  assert.deepEqual(asked, ['1']);
  await tick(BUSY_MS);
  await answer('NOT_FOUND');
  await tick(10 * BUSY_MS);
  assert.deepEqual([asked, told], [['1', '1'], ['1: RESOURCE_EXHAUSTED', '1: NOT_FOUND']]);
});

play('nothing is asked when nothing is wanted any more', async (asked, asker, _answer, _told, tick) => {
  asker.want('1');
  asker.want(undefined);
  await tick(10 * PAUSE_MS);
  assert.deepEqual(asked, []);
});
