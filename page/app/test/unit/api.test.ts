import assert from 'node:assert/strict';
import {test} from 'node:test';
import {ANSWER_MS, ApiError, listReader, readEvents, readJobs} from '../../src/api/client';
import {BadAnswer, decode} from '../../src/api/decode';
import {NO_LIST, withChanges} from '../../src/api/job_list';
import {PieceReader} from '../../src/api/pieces';
import {SseReader} from '../../src/api/sse';

test('64-bit numbers come as strings, and become numbers', () => {
  const [job] = decode('ListJobsResponse', {jobs: [{id: '17', submitted_us: '1795789470560000', lost_node_seconds: 1.5}]}).jobs;
  assert.deepEqual([job?.id, job?.submittedUs, job?.lostNodeSeconds], [17, 1795789470560000, 1.5]);
});

test('what is not there has its default, and a message none', () => {
  const [job] = decode('ListJobsResponse', {jobs: [{}]}).jobs;
  assert.deepEqual([job?.id, job?.state, job?.nodes, job?.spec, job?.progress], [0, '', [], undefined, undefined]);
  assert.deepEqual(decode('ListJobsResponse', {}).jobs, []);
});

test('enums are their names, as a number too', () => {
  const methods = (raw: unknown[]) => decode('ListJobsResponse', {jobs: [{methods: raw}]}).jobs[0]?.methods;
  assert.deepEqual(methods(['SUSPEND', 4]), ['SUSPEND', 'KILL']);
  assert.deepEqual(methods(['OF_TOMORROW', 99]), ['OF_TOMORROW', '99']);
});

test('fields that the page does not know are left out', () => {
  assert.deepEqual(decode('SiteInfo', {now_us: '5', of_tomorrow: {}}), {clusterManager: '', nowUs: 5, newestEvent: 0, user: '', isOperator: false});
});

test('another shape is an error that names the field', () => {
  const wrong: [unknown, RegExp][] = [
    [{jobs: {}}, /ListJobsResponse\.jobs: a list was expected/], [{jobs: [{id: 'x'}]}, /jobs\[0\]\.id: a number was expected|not "x"/],
    [{jobs: [{spec: 5}]}, /jobs\[0\]\.spec: an object was expected/], [{jobs: [{state: 5}]}, /jobs\[0\]\.state: a string was expected, not 5/], [[], /an object was expected/],
  ];
  for (const [raw, message] of wrong) {
    assert.throws(() => decode('ListJobsResponse', raw), error => error instanceof BadAnswer && message.test(error.message));
  }
});

test('events come out when they are whole, however they are cut', () => {
  const whole = ': here\nid: 4\n\nid: 5\ndata: {"a":1}\n\nid: 6\r\ndata: x\r\ndata: y\r\n\r\n: beat\n\n';
  for (let cut = 0; cut <= whole.length; ++cut) {
    const reader = new SseReader();
    assert.deepEqual([...reader.read(whole.slice(0, cut)), ...reader.read(whole.slice(cut))], ['{"a":1}', 'x\ny'], `cut at ${cut}`);
    assert.equal(reader.lastId, '6');
  }
});

test('an id counts when its event is whole, and not before', () => {
  const whole = ': here\nid: 4\n\nid: 5\ndata: {"seq":5}\n\nid: 6\r\ndata: {"seq":6}\r\n\r\n: here\nid: 9\n\n';
  for (let cut = 0; cut <= whole.length; ++cut) {
    const reader = new SseReader(), seen = new Set([4]);
    for (const text of [whole.slice(0, cut), whole.slice(cut)]) {
      for (const data of reader.read(text)) seen.add((JSON.parse(data) as {seq: number}).seq);
      const lastId = Number(reader.lastId);
      for (const seq of [5, 6]) assert.ok(seq > lastId || seen.has(seq), `cut at ${cut}: ${seq} was not there at id ${lastId}`);
    }
    assert.equal(reader.lastId, '9');
  }
});

test('an answer is from when the server was asked, and older where it says so', async () => {
  const asOf = async (headers: Record<string, string>) => {
    globalThis.fetch = () => Promise.resolve(new Response('{"jobs": []}', {headers}));
    const beforeMs = performance.now(), {asOfMs} = await readJobs();
    return [asOfMs - beforeMs, performance.now() - asOfMs] as const;
  };
  const [fresh, passed] = await asOf({}), [aged, since] = await asOf({'Siding-Age': '12000'});
  assert.ok(fresh >= 0 && passed >= 0);
  assert.ok(aged < 0 && since >= 12_000);
});

const CHANGES = (version: string, whole: boolean, jobs: [number, string][], gone: number[] = []) =>
  decode('JobChanges', {version, whole, jobs: jobs.map(([id, state]) => ({id: String(id), state})), gone: gone.map(String)});
const statesOf = (jobs: Iterable<{id: number; state: string}>) => [...jobs].map(({id, state}) => `${id} ${state}`);

test('a list is what was told of it, and what has changed since', () => {
  const first = withChanges(NO_LIST, CHANGES('a-1', true, [[1, 'running'], [2, 'running'], [3, 'running']]));
  const second = withChanges(first, CHANGES('a-2', false, [[4, 'pending'], [2, 'parked']], [1, 2]));
  assert.deepEqual(statesOf(second.jobs.values()), ['3 running', '4 pending', '2 parked']);
  assert.equal(second.version, 'a-2');
  assert.equal(first.jobs.size, 3, 'whoever asked with the first version has it still');
  assert.deepEqual(statesOf(withChanges(second, CHANGES('b-1', true, [[9, 'running']])).jobs.values()), ['9 running']);
});

// A server that has these answers, in their order; its questions.
function answerInOrder(answers: unknown[]): string[] {
  const asked: string[] = [];
  globalThis.fetch = path => Promise.resolve(new Response(JSON.stringify(answers[asked.push(String(path)) - 1])));
  return asked;
}
const jobsOf = (...states: string[]) => states.map((state, i) => ({id: String(i + 1), state}));

test('a list is asked for with the version of its last answer, and answered whole', async () => {
  const asked = answerInOrder([
    {version: 'a-1', whole: true, jobs: jobsOf('running', 'running'), gone: []}, {version: 'a-2', whole: false, jobs: [{id: '2', state: 'parked'}], gone: []},
  ]);
  const read = listReader('/jobs/changes?brief=true');
  await read();
  assert.deepEqual(statesOf((await read()).jobs), ['1 running', '2 parked']);
  assert.deepEqual(asked, ['/api/v1/jobs/changes?brief=true', '/api/v1/jobs/changes?brief=true&after=a-1']);
});

test('of two questions at a time each has its own answer', async () => {
  answerInOrder([
    {version: 'a-1', whole: true, jobs: jobsOf('running', 'running'), gone: []},
    {version: 'a-2', whole: false, jobs: [{id: '2', state: 'parked'}], gone: []}, {version: 'a-3', whole: false, jobs: [], gone: ['1']},
  ]);
  const read = listReader('/jobs/changes?brief=true');
  await read();
  const [second, third] = await Promise.all([read(), read()]);
  assert.deepEqual([statesOf(second.jobs), statesOf(third.jobs)], [['1 running', '2 parked'], ['2 running']]);
});

const STREAM = [5, 6, 7].map(seq => `id: ${seq}\ndata: {"seq":"${seq}","kind":"note"}\n\n`).join('');
// A controller that answers with this text, cut there, and says no more.
function answerWith(whole: string, cut: number): void {
  const encoder = new TextEncoder();
  globalThis.fetch = (_, init) => Promise.resolve(new Response(new ReadableStream({
    start(stream) {
      for (const text of [whole.slice(0, cut), whole.slice(cut)]) if (text !== '') stream.enqueue(encoder.encode(text));
      init?.signal?.addEventListener('abort', () => stream.error(init.signal?.reason));
    },
  })));
}

test('older events are read up to and with the last that was asked for', async () => {
  for (let cut = 0; cut <= STREAM.length; ++cut) {
    answerWith(`: here\nid: 4\n\n${STREAM}`, cut);
    const events = await readEvents(4, 6, new AbortController().signal);
    assert.deepEqual(events.map(each => each.seq), [5, 6], `cut at ${cut}`);
  }
});

test('a mark without an event moves the place alone', () => {
  const reader = new SseReader();
  assert.deepEqual(reader.read(': here\nid: 88\n\n'), []);
  assert.equal(reader.lastId, '88');
});

test('where a stream begins is told apart from its events, once, however it is cut', () => {
  const whole = `: here\nid: 4\n\n${STREAM}: here\nid: 9\n\n`;
  for (let cut = 0; cut <= whole.length; ++cut) {
    const reader = new PieceReader(), pieces = [reader.read(whole.slice(0, cut)), reader.read(whole.slice(cut))];
    assert.deepEqual(pieces.flatMap(each => each.begins ?? []), [4], `cut at ${cut}`);
    assert.deepEqual(pieces.flatMap(each => each.events.map(event => event.seq)), [5, 6, 7]);
    assert.ok(pieces[0]?.begins !== undefined || pieces[0]?.events.length === 0, 'nothing comes before it');
    assert.equal(pieces[1]?.seq, 9);
  }
});

test('a question without an answer in time has failed, before its answer begins and in it', async () => {
  const silence: [string, typeof fetch][] = [
    ['not sent', (_, init) => new Promise((_, reject) => { init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)); })],
    ['cut', (_, init) => Promise.resolve(new Response(new ReadableStream({start: stream => { init?.signal?.addEventListener('abort', () => stream.error(init.signal?.reason)); }})))],
  ];
  const timer = globalThis.setTimeout;
  for (const [name, answer] of silence) {
    for (const question of [() => readJobs(), () => readEvents(4, 6, new AbortController().signal)]) {
      const late: (() => void)[] = [];
      globalThis.fetch = answer;
      globalThis.setTimeout = ((then: () => void, ms: number) => {
        assert.equal(ms, ANSWER_MS);
        return late.push(then);
      }) as unknown as typeof setTimeout;
      const failure = assert.rejects(question(), error => error instanceof ApiError && error.code === 'UNREACHABLE' && /within/.test(error.message), name);
      globalThis.setTimeout = timer;
      late.forEach(each => each());
      await failure;
    }
  }
});

test('a question that is given up is not called late', async () => {
  globalThis.fetch = (_, init) => init?.signal?.aborted ? Promise.reject(init.signal.reason) : new Promise(() => undefined);
  await assert.rejects(readJobs(AbortSignal.abort()), error => error instanceof ApiError && !/within/.test(error.message));
});
