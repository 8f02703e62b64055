// What happens while somebody looks: events, a controller that goes away and comes back, keys, ten thousand rows.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {PATIENCE_MS, findings, hasBrowser, heading, launch, open, picture, problems} from './browser.mjs';
import {governed, large, plan, policy, preempted, replanned, trends, us} from './cluster.mjs';
import {StandIn} from './stand_in.mjs';

const PAGE = process.env.SIDING_PAGE ?? new URL('../../dist', import.meta.url).pathname;
const options = {skip: !hasBrowser && 'there is no chromium'};
let browser;
before(async () => { if (hasBrowser) browser = await launch(); });
const servers = [];  // of tests that have failed, too
const standIn = (cluster, settings) => {
  servers.push(Object.assign(new StandIn(PAGE, cluster), settings));
  return servers.at(-1);
};
after(async () => {
  await browser?.close();
  for (const each of servers) if (each.server?.listening) await each.goAway();
});

function play(name, cluster, address, act, look, settings) {
  test(name, options, async () => {
    const server = standIn(cluster(), settings), url = await server.listen(), page = await open(browser, url + address, look);
    try {
      await act(page, server);
      assert.deepEqual(page.errors, []);
    } finally {
      await page.close();
      if (server.server.listening) await server.goAway();
    }
  });
}

// The job changes, and an event says that something has happened to it.
function change(server, id, kind, changes) {
  Object.assign(server.cluster.jobs.get(id), changes);
  server.tell(server.cluster.event(0, id, kind, kind));
}

play('an event moves the job that it is about', preempted, '#/job/2', async (page, server) => {
  await heading(page, 'cfd-wing is parked');
  change(server, 2, 'place', {state: 'restoring', nodes: ['n8']});
  await heading(page, 'cfd-wing is being restored');
  change(server, 2, 'restored', {state: 'running', madeWayFor: '0', back: undefined});
  await heading(page, 'cfd-wing runs');
  await page.getByText('Since ').waitFor();
});

test('who is told of no event sees what changes all the same', options, async () => {
  const server = standIn(preempted(), {stranger: true}), url = await server.listen(), page = await open(browser, `${url}#/job/2`);
  await heading(page, 'cfd-wing is parked');
  change(server, 2, 'place', {state: 'restoring'});
  await heading(page, 'cfd-wing is being restored');
  await page.close();
  await server.goAway();
});

test('a page that comes back is not told again of what was hidden from it', options, async () => {
  const server = standIn(preempted(), {stranger: true}), url = await server.listen(), page = await open(browser, `${url}#/now`);
  await heading(page, '1 deadline is ahead');
  for (let i = 0; i < 3; ++i) change(server, 2, 'note', {});
  server.tell(server.cluster.event(0, 0, 'cordoned', 'n1 takes nothing new'));
  change(server, 2, 'note', {});
  server.beat();
  await page.locator('.feed li', {hasText: 'takes nothing new'}).waitFor();
  const newest = String(server.cluster.events.length), again = server.asked(url => url.pathname.endsWith('/events'), PATIENCE_MS);
  for (const stream of server.streams) stream.end();
  assert.equal((await again).searchParams.get('after'), newest);
  await page.close();
  await server.goAway();
});

play('plans that were made before something happened are asked for once more', preempted, '#/preemption/8', async (page, server) => {
  await heading(page, 'storm waits for its nodes');
  await server.streamsAre(1, PATIENCE_MS);
  const [stream] = server.streams;
  server.ageMs = 600_000;
  change(server, 8, 'note', {});
  for (let i = 0; i < 3; ++i) await server.asked(question => question.searchParams.get('compare') === 'true', PATIENCE_MS);
  assert.ok(server.streams.has(stream), 'it is not because the page began anew');
});

play('the margin of a deadline comes with its job, and follows it', preempted, '#/now', async (page, server) => {
  await heading(page, 'The deadline is safe');
  const asked = [];
  server.news.on('asked', question => { if (question.pathname.endsWith('/plans')) asked.push(question.pathname); });
  await page.getByText('1 of 3 jobs have made way').waitFor();
  server.cluster.jobs.get(8).plan = {...server.cluster.jobs.get(8).plan, victimsAway: 2};  // without an event of its own
  await page.getByText('2 of 3 jobs have made way').waitFor();
  change(server, 8, 'planned', {plan: {feasible: true, predictedStartUs: us(server.cluster.t0 + 320), marginUs: us(-20), plans: 2}});
  await heading(page, '1 of 1 deadline cannot be met');
  await page.getByText('storm (8) would start 20 s late.').waitFor();
  assert.deepEqual(asked, [], 'no plan is asked for');
});

play('a job that is not known any more leaves the list', preempted, '#/jobs', async (page, server) => {
  await page.getByRole('link', {name: 'long 5'}).waitFor();
  server.cluster.jobs.delete(5);
  server.tell(server.cluster.event(0, 0, 'forgotten', '1 job left the records'));
  await page.getByRole('link', {name: 'long 5'}).waitFor({state: 'detached'});
});

play('a controller that is killed is missed, and found again with all that has happened', preempted, '#/now', async (page, server) => {
  await heading(page, 'The deadline is safe');
  await server.goAway();
  await page.getByText('The controller is not heard.').waitFor();
  await heading(page, 'The deadline was safe, at');
  assert.match(await page.locator('.bar').innerText(), /Last heard .* ago\. What you see is of \d\d:\d\d:\d\d, event \d+\.\s+Trying again/);
  await picture(page, 'lost-light');
  assert.deepEqual([...await problems(page), ...await findings(page)], []);
  server.cluster.jobs.get(8).state = 'cancelled';
  server.cluster.event(0, 8, 'cancelled', 'cancelled');
  await server.listen();
  await page.getByRole('button', {name: 'Try now'}).click();
  await heading(page, 'No deadline is ahead');
  await page.locator('.feed li', {hasText: 'cancelled'}).waitFor();
  assert.equal(await page.getByText('The controller is not heard.').count(), 0);
});

// Without what goes on with the time.
const rows = each => each.locator('.vrow').evaluateAll(list => list.map(row => [...row.children].filter((_, i) => i !== 4).map(cell => cell.textContent).join('|')));
// Both are at the same.
async function sameAsFresh(page) {
  const fresh = await open(browser, page.url());
  await fresh.locator('.vrow', {hasText: 'dumping'}).waitFor();
  assert.deepEqual(await rows(page), await rows(fresh));
  await fresh.close();
}

play('a page that comes back ends as a fresh one', preempted, '#/jobs', async (page, server) => {
  await page.getByRole('link', {name: 'long 5'}).waitFor();
  await server.goAway();
  await page.getByText('The controller is not heard.').waitFor();
  server.cluster.jobs.delete(6);
  for (const [id, state] of [[1, 'parked'], [2, 'running'], [4, 'dumping']]) Object.assign(server.cluster.jobs.get(id), {state});
  for (let i = 0; i < 10_000; ++i) server.cluster.event(0, 1 + i % 5, 'note', `note ${i}`);
  await server.listen();
  await page.getByRole('button', {name: 'Try now'}).click();
  await page.locator('.vrow', {hasText: 'dumping'}).waitFor();
  await sameAsFresh(page);
});

play('who is told of much is told of the list what is different, and ends as a fresh one', preempted, '#/jobs', async (page, server) => {
  await page.getByRole('link', {name: 'long 5'}).waitFor();
  const again = server.asked(question => question.pathname.endsWith('/jobs/changes') && question.searchParams.has('after'), PATIENCE_MS);
  server.cluster.jobs.delete(6);
  for (const [id, state] of [[1, 'parked'], [2, 'running'], [4, 'dumping']]) Object.assign(server.cluster.jobs.get(id), {state});
  const events = Array.from({length: 10_000}, (_, i) => server.cluster.event(0, 7, 'note', `note ${i}`));
  server.tell(...events, server.cluster.event(0, 0, 'forgotten', '1 job left the records'));
  await again;
  await page.locator('.vrow', {hasText: 'dumping'}).waitFor();
  await sameAsFresh(page);
});

play('a controller that comes back with an older journal is followed, and what it has not is gone', preempted, '#/now', async (page, server) => {
  await heading(page, 'The deadline is safe');
  change(server, 5, 'note', {});
  await page.locator('.feed li', {hasText: 'note'}).waitFor();
  await server.goAway();
  await page.getByText('The controller is not heard.').waitFor();
  server.cluster.events.splice(-3);
  await server.listen();
  await page.getByRole('button', {name: 'Try now'}).click();
  await page.getByText('The controller is not heard.').waitFor({state: 'detached'});
  change(server, 8, 'cancelled', {state: 'cancelled'});
  await page.locator('.feed li', {hasText: 'cancelled'}).waitFor();
  assert.equal(await page.locator('.feed li', {hasText: 'note'}).count(), 0);
});

// The browser says the page is hidden, or seen: a headless one hides none.
const hide = (page, hidden) => page.evaluate(is => {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => is});
  document.dispatchEvent(new Event('visibilitychange'));
}, hidden);

// With signs of life meanwhile, or a page would give its stream up for its silence.
async function beating(server, act) {
  const beats = setInterval(() => server.beat(), 1000);
  await act().finally(() => clearInterval(beats));
}

play('a page that nobody looks at keeps no connection, and comes back with all that has happened', preempted, '#/job/2', async (page, server) => {
  await heading(page, 'cfd-wing is parked');
  await hide(page, true);
  await beating(server, () => server.streamsAre(0, PATIENCE_MS));
  change(server, 2, 'restored', {state: 'running', madeWayFor: '0', back: undefined});
  await hide(page, false);
  await heading(page, 'cfd-wing runs');
  await page.locator('.link', {hasText: 'live'}).waitFor();
});

test('more pages than the browser has connections follow, as long as one is seen', options, async () => {
  const server = standIn(preempted()), url = await server.listen(), context = await browser.newContext();
  await beating(server, async () => {
    for (let i = 0; i < 8; ++i) {
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      await page.goto(`${url}#/now`);
      await heading(page, 'The deadline is safe');
      await hide(page, true);
    }
  });
  await context.close();
  await server.goAway();
});

test('a controller that answers nothing is missed, though its stream lives', options, async () => {
  const server = standIn(preempted()), url = await server.listen(), page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.clock.install();
  await page.goto(`${url}#/now`);
  await heading(page, 'The deadline is safe');
  server.mute = true;
  await beating(server, async () => {
    for (let i = 0; i < 2; ++i) {
      await server.asked(question => !question.pathname.endsWith('/events'), PATIENCE_MS);
      await page.clock.fastForward(20_000);
    }
    await page.getByText('The controller is not heard.').waitFor();
  });
  server.mute = false;
  await page.getByRole('button', {name: 'Try now'}).click();
  await heading(page, 'The deadline is safe');
  await page.close();
  await server.goAway();
});

play('a controller that refuses is said to, in words', preempted, '#/now', async (page, server) => {
  await heading(page, 'The deadline is safe');
  server.refusal = {status: 503, message: 'it stands by'};
  for (const stream of server.streams) stream.end();
  await page.getByText('The controller refuses.').waitFor();
  await page.getByText('UNAVAILABLE, it cannot answer now: it stands by.').waitFor();
});

play('who is not let in is told what the server says, and nothing of the controller', preempted, '#/now', async (page, server) => {
  await heading(page, 'The deadline is safe');
  server.refusal = {status: 401, message: 'this page is open elsewhere'};
  for (const stream of server.streams) stream.end();
  await page.getByRole('alert').getByText('this page is open elsewhere.', {exact: true}).waitFor();
  assert.equal(await page.getByText('refuses').count(), 0);
});

test('without a controller from the start there is a word of it, and no empty tables', options, async () => {
  const server = standIn(preempted(), {refusal: {status: 503, message: 'it stands by'}}), url = await server.listen();
  const page = await open(browser, url);
  await heading(page, 'No data from the controller');
  await picture(page, 'refused-light');
  assert.deepEqual(await findings(page), []);
  assert.equal(await page.locator('table').count(), 0);
  server.refusal = undefined;
  await heading(page, 'The deadline is safe');
  await page.close();
  await server.goAway();
});

const standsBy = more => ({refusal: {status: 503, message: 'this controller stands by', active: {name: 'pid 4711 on head1 (head1:7433)', host: 'head1', ...more}}});
for (const [name, more, look] of [
  ['here', {page: 'http://127.0.0.1:7480', isHere: true}, page => page.locator('main a[href="http://127.0.0.1:7480/"]').waitFor()],
  ['elsewhere', {page: 'http://127.0.0.1:7480', isHere: false}, page => page.getByText('ssh -L 7480:127.0.0.1:7480 head1').waitFor()],
  ['without-page', {page: '', isHere: true}, page => page.getByText('It serves no page.').waitFor()],
]) {
  test(`a controller that stands by names the active one, ${name}`, options, async () => {
    const server = standIn(preempted(), standsBy(more)), url = await server.listen();
    for (const [how, looks] of [['light', {}], ['dark', {scheme: 'dark'}], ['phone', {width: 390, height: 844}]]) {
      const page = await open(browser, url, looks);
      await heading(page, 'This controller stands by');
      await page.getByText('The active one is pid 4711 on head1 (head1:7433).').waitFor();
      await look(page);
      await picture(page, `standby-${name}-${how}`);
      assert.deepEqual([...await problems(page), ...await findings(page)], []);
      if (how === 'light') {
        server.refusal = undefined;
        await page.getByRole('button', {name: 'Try now'}).click();
        await heading(page, 'The deadline is safe');
        await server.streamsAre(1, PATIENCE_MS);
        Object.assign(server, standsBy(more));
        for (const stream of server.streams) stream.end();
        await page.getByRole('alert').getByText('This controller stands by.').waitFor();
        await picture(page, `standby-${name}-after`);
        assert.deepEqual([...await problems(page), ...await findings(page)], []);
      }
      await page.close();
    }
    await server.goAway();
  });
}

test('a reading that takes long is told of', options, async () => {
  const server = standIn(preempted(), {silent: true}), url = await server.listen(), page = await open(browser, url);
  await heading(page, 'Reading the state of the cluster');
  await picture(page, 'reading-light');
  assert.deepEqual(await findings(page), []);
  await page.close();
  await server.goAway();
});

play('keys lead everywhere', preempted, '#/now', async page => {
  await heading(page, 'The deadline is safe');
  const go = async (keys, text) => {
    await Promise.all(keys.map(key => page.keyboard.press(key)));  // at once, as a busy machine has less time than a hand
    await heading(page, text);
    await page.waitForFunction(title => document.activeElement?.id === 'main' && document.title.startsWith(title), text);
  };
  await go(['g', 'j'], 'Jobs');
  await go(['g', 'w'], 'What if');
  await go(['g', 't'], 'Trends');
  await go(['g', 'y'], 'Policy');
  await go(['g', 'p'], 'Preemptions');
  await go(['g', 'n'], 'The deadline is safe');
  await page.keyboard.press('?');
  await page.getByRole('dialog', {name: 'Keys'}).waitFor();
  await picture(page, 'keys-light');
  assert.deepEqual(await findings(page), []);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  await page.keyboard.press('/');
  await page.keyboard.type('cfd');
  await page.getByRole('option', {name: 'cfd-wing 2'}).waitFor();
  await picture(page, 'find-light');
  assert.deepEqual(await findings(page), []);
  await page.keyboard.press('Enter');
  await heading(page, 'cfd-wing is parked');
});

play('single keys can be switched off, and stay off', preempted, '#/now', async page => {
  await heading(page, 'The deadline is safe');
  await page.keyboard.press('?');
  await page.getByLabel('Single keys work').uncheck();
  await page.keyboard.press('Escape');
  await page.reload();
  await heading(page, 'The deadline is safe');
  await Promise.all(['g', 'j', '/'].map(key => page.keyboard.press(key)));
  assert.equal(await page.locator('h1').innerText(), 'The deadline is safe');
  assert.equal(await page.getByRole('dialog').count(), 0);
});

play('arrows move between nodes, and a click keeps one', () => large(1000, 2000), '#/now', async page => {
  const tiles = page.locator('.tile'), focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label')?.split(':')[0]);
  await tiles.first().focus();
  for (const key of ['ArrowRight', 'ArrowDown']) await page.keyboard.press(key);
  assert.equal(await focused(), 'r02n02');
  await page.keyboard.press('End');
  assert.equal(await focused(), 'r25n40');
  assert.equal(await page.locator('.tile[tabindex="0"]').count(), 1, 'one stop for the tab key');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Home');
  assert.match(await page.locator('.inspect').innerText(), /r25n40/);
});

play('of ten thousand jobs those in sight exist', () => large(1000, 10_000), '#/jobs', async page => {
  await page.locator('.vrow').first().waitFor();
  assert.ok(await page.locator('.vrow').count() < 60);
  await page.locator('.vlist').evaluate(list => { list.scrollTop = list.scrollHeight; });
  await page.locator('.vrow[aria-rowindex="10001"]').waitFor();
  assert.ok(await page.locator('.vrow').count() < 60);
  await page.getByLabel('Filter', {exact: true}).fill('user:user3 state:parked');
  await page.getByText('of 10,000 jobs').waitFor();
  assert.ok((await page.locator('.vrow .k3').allInnerTexts()).every(user => user === 'user3'));
  assert.match(page.url(), /#\/jobs\?user%3Auser3%20state%3Aparked$/);
});

play('rows keep their places while the list is pointed at', preempted, '#/jobs', async (page, server) => {
  const first = () => page.locator('.vrow .k1').first().innerText();
  await page.locator('.vrow', {hasText: 'md-lipid'}).hover();
  assert.equal(await first(), 'md-lipid 3');
  change(server, 1, 'order-dump', {state: 'dumping'});
  await page.locator('.vrow', {hasText: 'dumping'}).waitFor();
  assert.equal(await first(), 'md-lipid 3');
  await page.mouse.move(5, 5);
  await page.locator('.vrow').first().filter({hasText: 'train 1'}).waitFor();
});

play('pointing at who is away lights where it is', preempted, '#/now', async page => {
  await page.locator('.away li', {hasText: 'md-lipid'}).hover();
  await page.locator('.faint .tile.hit').waitFor();
  assert.deepEqual(await page.locator('.tile.hit b').allInnerTexts(), ['n5']);
});

play('time goes on', () => {
  const cluster = preempted();
  cluster.jobs.get(8).spec.startByUs = us(Date.now() / 1000 + 100_000);
  return cluster;
}, '#/now', async page => {
  const clock = page.locator('.link .num'), at = await clock.innerText();
  await page.waitForFunction(before => document.querySelector('.link .num')?.textContent !== before, at);
});

const USER = {user: 'ada', plan}, what = name => `.form input[name="${name}"]`;

play('a request is planned as it is typed, and the address has it', preempted, '#/whatif', async (page, server) => {
  await page.getByText('No job has to make way.').waitFor();
  await page.locator(what('nodes')).fill('4');
  await page.getByRole('link', {name: 'cfd-wing 2'}).waitFor();
  await page.locator(what('by')).fill('+2s');
  await page.getByText('4 nodes cannot be free in time: 2 can.').waitFor();
  await page.getByRole('button', {name: 'Ask for the earliest'}).click();
  await page.getByText('before its deadline').waitFor();
  assert.match(page.url(), /#\/whatif\?nodes%3D4%26by%3Dearliest$/);
  await page.getByText('sidingctl submit --nodes 4 --slots 1 --start-by earliest -- COMMAND', {exact: true}).waitFor();
  await page.locator(what('labels')).fill('account=weather');
  await page.getByText('Account weather may not ask for nodes by a time.').waitFor();
  const colleague = await open(browser, page.url());
  await colleague.getByText('Account weather may not ask for nodes by a time.').waitFor();
  await colleague.close();
  assert.equal(server.cluster.jobs.size, 8, 'nothing was submitted');
}, {}, USER);

play('the former plan stays until the new one is there', preempted, '#/whatif?nodes%3D4%26by%3D%2B20s', async (page, server) => {
  await page.locator('td', {hasText: '+10m'}).waitFor();
  await page.getByText('before its deadline').waitFor();
  server.mute = true;
  const asked = server.asked(question => question.searchParams.get('nodes') === '9', PATIENCE_MS);
  await page.locator(what('nodes')).fill('9');
  await asked;
  await page.locator('[aria-busy="true"]', {hasText: 'before its deadline'}).waitFor();
  assert.equal(await page.locator('td', {hasText: '+10m'}).count(), 0, 'other deadlines were of the former request');
}, {}, USER);

play('while the controller is not heard no plan is asked for, and afterwards it is', preempted, '#/whatif?nodes%3D4%26by%3D%2B20s', async (page, server) => {
  await page.getByText('before its deadline').waitFor();
  await server.goAway();
  await page.getByText('It is asked when the controller is heard again.').waitFor();
  await page.locator(what('nodes')).fill('9');
  await server.listen();  // it tries again by itself
  await page.getByText('It would be refused').waitFor({timeout: PATIENCE_MS});
}, {}, USER);

play('a changed policy is seen with who changed it', governed, '#/policy?margin', async (page, server) => {
  await page.locator('.yaml tr.sel', {hasText: 'margin: 2s'}).waitFor();
  await page.getByText('leaves 3 jobs alone in the plan of request 8').waitFor();
  server.policy.yaml = server.policy.yaml.replace('margin: 2s', 'margin: 3s');
  server.tell(server.cluster.event(0, 0, 'policy-changed', 'changed', {by: 'mara', changes: ['-margin: 2s', '+margin: 3s']}));
  await page.locator('.yaml tr.sel', {hasText: 'margin: 3s'}).getByText('loaded by mara').waitFor();
  await page.locator('.changes li').first().getByText('loaded by mara').waitFor();
}, {}, {policy: policy()});

play('each plan of a request is shown, and which it is', replanned, '#/preemption/7', async page => {
  const why = page.locator('.panel', {has: page.getByRole('heading', {name: 'Why these jobs'})});
  await why.getByText('Plan 2 of 3').waitFor();
  assert.equal(await why.getByRole('row').count(), 2, 'the jobs that were still to go, and their heading');
  await page.getByRole('button', {name: 'The plan before'}).click();
  await why.getByRole('link', {name: 'infer 4'}).first().waitFor();
  assert.match(page.url(), /#\/preemption\/7\?plan%3D1$/);
  await page.getByRole('button', {name: 'The next plan'}).click();
  await page.getByRole('button', {name: 'The next plan'}).click();
  await why.getByText('no job had to make way').waitFor();
});

const panel = (page, title) => page.locator('.panel', {has: page.getByRole('heading', {name: title, exact: true})});

play('trends are of 7 days or of 90, by the address, and each chart has a table', preempted, '#/trends', async page => {
  await page.getByRole('img', {name: /^Deadlines by hour: \d+ of \d+ deadlines met/}).waitFor();
  await page.getByRole('link', {name: '90 days, by day'}).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('img', {name: /^Deadlines by day: /}).waitFor();
  assert.match(page.url(), /#\/trends\?90d$/);
  assert.equal(await page.locator('nav[aria-label="Range"] [aria-current]').innerText(), '90 days, by day');
  for (const title of ['Deadlines', 'Lost node time', 'Predictions', 'Storage']) await panel(page, title).getByText('As a table').click();
  await panel(page, 'Storage').locator('tbody tr').nth(79).waitFor();
  assert.equal(await panel(page, 'Storage').locator('tbody tr').count(), 80);
  assert.deepEqual(await panel(page, 'Lost node time').locator('th').allInnerTexts(), ['Day, UTC', 'Suspend', 'Checkpoint', 'Own save', 'Kill', 'Failure']);
  await picture(page, 'trends-tables');
  assert.deepEqual([...await problems(page), ...await findings(page)], []);
  await page.goBack();
  await page.getByRole('img', {name: /^Deadlines by hour: /}).waitFor();
}, {}, {trends: trends()});

// The last hour, in which little happened.
const HOUR_S = 3600, beginsS = Math.floor(Date.now() / 1000 / HOUR_S) * HOUR_S;
const little = {beginsUs: us(beginsS), endsUs: us(beginsS + HOUR_S), missed: '1', refused: '1', preemptions: '2', releases: {}};

play('what did not happen is said, and what did is drawn', preempted, '#/trends', async page => {
  await page.getByText('No order freed nodes in these 7 days.').waitFor();
  await page.getByText('No node time was lost in these 7 days. Jobs made way 2 times.').waitFor();
  await page.getByText('No image was written in these 7 days.').waitFor();
  await page.getByRole('img', {name: 'Deadlines by hour: 0 of 1 deadline met, 1 request refused'}).waitFor();
  assert.match((await page.locator('.chart g title').allTextContents()).join(), /^\d+ \w+ \d\d:00 to \d\d:00: 1 missed, 1 refused$/);
  assert.equal(await page.getByRole('img').count(), 1, 'no chart without data');
}, {}, {trends: {hours: [little], week: little}});

test('trends are read again each minute while they are shown, and when the controller is back', options, async () => {
  const server = standIn(preempted(), {trends: trends()}), url = await server.listen(), page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.clock.install();
  await page.goto(`${url}#/trends`);
  await panel(page, 'Predictions').getByRole('img').waitFor();
  const minuteLater = async () => {
    for (let i = 0; i < 3; ++i) {
      await page.clock.fastForward(20_000);  // not as long as the silence after which a controller is missed
      await page.locator('.link', {hasText: 'live'}).waitFor();
    }
  };
  await beating(server, async () => {
    server.trends = {status: 500, message: 'out of order'};
    await minuteLater();
    await page.getByText('Trends could not be read again: INTERNAL: out of order.').waitFor();
    await panel(page, 'Predictions').getByRole('img').waitFor();
    server.trends = {};
    await minuteLater();
    await page.getByText('No order freed nodes in these 7 days.').waitFor();
  });
  await server.goAway();
  await page.getByText('The controller is not heard.').waitFor();
  await page.getByText('No order freed nodes in these 7 days.').waitFor();
  server.trends = trends();
  await server.listen();
  await page.getByRole('button', {name: 'Try now'}).click();
  await panel(page, 'Predictions').getByRole('img').waitFor();
  await page.close();
  await server.goAway();
});
