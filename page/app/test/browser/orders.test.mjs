// Orders by hand: what the dialog says, that it acts once, and what it does when things change meanwhile.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {findings, hasBrowser, heading, launch, open, picture, problems} from './browser.mjs';
import {preempted} from './cluster.mjs';
import {StandIn} from './stand_in.mjs';

const PAGE = process.env.SIDING_PAGE ?? new URL('../../dist', import.meta.url).pathname;
const options = {skip: !hasBrowser && 'there is no chromium'};
const OPERATOR = {user: 'root', isOperator: true};
let browser;
before(async () => { if (hasBrowser) browser = await launch(); });
const servers = [];
after(async () => {
  await browser?.close();
  for (const each of servers) if (each.server?.listening) await each.goAway();
});

function play(name, address, act, reader = OPERATOR, look = {}) {
  test(name, options, async () => {
    const server = Object.assign(new StandIn(PAGE, preempted()), {reader: reader ?? undefined});
    servers.push(server);
    const url = await server.listen(), page = await open(browser, url + address, look);
    try {
      await act(page, server);
      assert.deepEqual(page.errors, []);
    } finally {
      await page.close();
      if (server.server.listening) await server.goAway();
    }
  });
}

const dialog = page => page.getByRole('dialog');
const button = (page, name) => page.getByRole('button', {name, exact: true});
const orders = page => page.getByRole('group', {name: 'Orders'}).getByRole('button').allInnerTexts();
const focusIs = (page, text) => page.waitForFunction(name => document.activeElement?.textContent === name, text);
const ready = page => dialog(page).getByText('Lost', {exact: true}).waitFor();

for (const look of [{width: 1280, scheme: 'light'}, {width: 1000, scheme: 'dark'}, {width: 390, height: 844, scheme: 'light'}, {width: 320, height: 640, scheme: 'dark'}]) {
  const name = `${look.width}-${look.scheme}`;
  play(`an order is shown with its plan, ${name}: nothing to find`, '#/job/1', async (page, server) => {
    await heading(page, 'train runs');
    await button(page, 'Vacate').click();
    await ready(page);
    await picture(page, `order-${name}`);
    assert.deepEqual([...await problems(page), ...await findings(page)], []);
    server.cluster.slow = true;
    server.refuseOrder = {status: 409, message: 'what was planned does not hold any more, and nothing was done: what runs on these nodes has changed'};
    await dialog(page).getByRole('button', {name: 'Vacate', exact: true}).click();
    await dialog(page).getByText('nothing was done').first().waitFor();
    await picture(page, `order-changed-${name}`);
    assert.deepEqual([...await problems(page), ...await findings(page)], []);
    await dialog(page).getByRole('button', {name: 'Vacate', exact: true}).click();
    await focusIs(page, 'Close');
    await dialog(page).getByText('vacate ordered').waitFor();
    await picture(page, `order-given-${name}`);
    assert.deepEqual([...await problems(page), ...await findings(page)], []);
  }, OPERATOR, look);
}

play('by the keyboard alone: the focus is on Cancel, and what is ordered is told with its event', '#/job/1', async (page, server) => {
  await heading(page, 'train runs');
  await button(page, 'Suspend').focus();
  await page.keyboard.press('Enter');
  await ready(page);
  await focusIs(page, 'Cancel');
  await page.keyboard.press('Enter');
  await dialog(page).waitFor({state: 'detached'});
  await focusIs(page, 'Suspend');
  assert.deepEqual(server.orders, []);
  await page.keyboard.press('Enter');
  await ready(page);
  await page.keyboard.press('Tab');
  await focusIs(page, 'Suspend');
  await page.keyboard.press('Enter');
  await focusIs(page, 'Close');
  const {seq} = server.cluster.events.at(-1);
  await dialog(page).getByText(`Event ${seq},`).waitFor();
  await dialog(page).getByText('suspend ordered').waitFor();
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({state: 'detached'});
  assert.deepEqual(server.orders.map(({action, ifUnchanged}) => [action, ifUnchanged]), [[{verb: 'suspend', job: 1}, Number(seq)]]);
});

play('it never acts twice', '#/job/1', async (page, server) => {
  await heading(page, 'train runs');
  await button(page, 'Kill').click();
  await ready(page);
  const kill = dialog(page).getByRole('button', {name: 'Kill', exact: true}), keys = [];
  page.on('request', request => { if (request.url().endsWith('/orders')) keys.push(request.postDataJSON().key); });
  await kill.evaluate(element => { for (let i = 0; i < 5; ++i) element.click(); });
  await focusIs(page, 'Close');
  assert.deepEqual([keys.length, server.orders.length], [1, 1]);
});

play('whether it was done is not known when the answer does not come, and to send it again has the same key', '#/job/1', async (page, server) => {
  await heading(page, 'train runs');
  await button(page, 'Kill').click();
  await ready(page);
  const keys = [];
  page.on('request', request => { if (request.url().endsWith('/orders')) keys.push(request.postDataJSON().key); });
  server.breaksOrders = true;
  await dialog(page).getByRole('button', {name: 'Kill', exact: true}).click();
  await dialog(page).getByText('Whether it was done is not known:').waitFor();
  assert.deepEqual(await findings(page), []);
  server.breaksOrders = false;
  await dialog(page).getByRole('button', {name: 'Kill: send again'}).click();
  await focusIs(page, 'Close');
  assert.equal(server.orders.length, 1);
  assert.deepEqual(keys, Array(keys.length).fill(server.orders[0].key));
});

play('a plan that changed meanwhile is shown again, with what changed, and needs another yes', '#/job/1', async (page, server) => {
  await heading(page, 'train runs');
  await button(page, 'Suspend').click();
  await ready(page);
  server.cluster.slow = true;
  server.refuseOrder = {status: 409, message: 'what was planned does not hold any more, and nothing was done: the plans of requests with deadlines have changed'};
  await dialog(page).getByRole('button', {name: 'Suspend', exact: true}).click();
  const changed = dialog(page).getByRole('alert');
  await changed.getByText('The plans of requests with deadlines have changed.').waitFor();
  await changed.getByText('deadline of storm (8): starts 12 s too late (was: starts 4 min 50 s before it)').waitFor();
  assert.deepEqual(server.orders, []);
  await dialog(page).getByRole('button', {name: 'Suspend', exact: true}).click();
  await focusIs(page, 'Close');
  assert.equal(server.orders.length, 1);
});

play('what cannot be done is said, and cannot be ordered', '#/job/1', async (page, server) => {
  await heading(page, 'train runs');
  server.cluster.actionPlan = () => { throw new Error('none'); };
  server.post = async (path, request, response) => server.refuse(response, 409, 'job 1 cannot be frozen: it holds a lock');
  await button(page, 'Suspend').click();
  await dialog(page).getByText('job 1 cannot be frozen: it holds a lock').waitFor();
  await focusIs(page, 'Close');
  assert.equal(await dialog(page).getByRole('button').count(), 1);
  assert.deepEqual(await findings(page), []);
});

play('what has no plan says what it does, and rests on the newest event', '#/job/3', async (page, server) => {
  await heading(page, 'md-lipid is frozen');
  assert.deepEqual(await orders(page), ['Resume', 'Vacate', 'Migrate', 'Kill']);
  await button(page, 'Resume').click();
  await dialog(page).getByText('It continues where it was frozen').waitFor();
  await dialog(page).getByText('sidingctl resume 3').waitFor();
  const next = server.cluster.events.length + 1;
  await dialog(page).getByRole('button', {name: 'Resume', exact: true}).click();
  await focusIs(page, 'Close');
  assert.equal(server.orders[0].ifUnchanged, next);
});

play('while too many plans are made it is asked again by itself', '#/job/1', async (page, server) => {
  server.refusePlans = {status: 429, message: 'plans have taken 2.0s, and may take one part in 5 of the time'};
  await heading(page, 'train runs');
  await button(page, 'Vacate').click();
  await dialog(page).getByText('It is asked again by itself: plans have taken 2.0s').waitFor();
  server.refusePlans = undefined;
  await ready(page);
  await dialog(page).getByRole('button', {name: 'Vacate', exact: true}).click();
  await focusIs(page, 'Close');
  assert.equal(server.orders.length, 1);
});

play('the command is the same order', '#/job/1', async page => {
  await heading(page, 'train runs');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await button(page, 'Vacate').click();
  await ready(page);
  await dialog(page).getByRole('button', {name: 'Local storage'}).click();
  await dialog(page).getByText('sidingctl vacate 1 --tier local --if-unchanged').waitFor();
  await dialog(page).getByText('is written to local storage').waitFor();
  await dialog(page).getByRole('button', {name: 'Copy as command'}).click();
  await dialog(page).getByText('Copied.').waitFor();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^sidingctl vacate 1 --tier local --if-unchanged \d+$/);
});

play('orders are off while the controller is not heard', '#/job/1', async (page, server) => {
  await heading(page, 'train runs');
  await button(page, 'Kill').click();
  await ready(page);
  await server.goAway();
  await dialog(page).getByText('The controller is not heard: nothing can be ordered.').waitFor();
  assert.equal(await dialog(page).getByRole('button', {name: 'Kill', exact: true}).getAttribute('aria-disabled'), 'true');
  await dialog(page).getByRole('button', {name: 'Kill', exact: true}).click({force: true});
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({state: 'detached'});
  assert.ok(await button(page, 'Kill').isDisabled());
  assert.deepEqual(server.orders, []);
});

play('a node that is kept has its orders', '#/now?node%3Dn6', async (page, server) => {
  await heading(page, 'The deadline is safe');
  await button(page, 'Cordon').click();
  await dialog(page).getByText('n6 takes nothing new. Job 4 stays there, and keeps it.').waitFor();
  await dialog(page).getByText('sidingctl cordon n6').waitFor();
  await picture(page, 'order-cordon');
  await dialog(page).getByRole('button', {name: 'Cordon', exact: true}).click();
  await dialog(page).getByText('Cordon of node n6 is ordered.').waitFor();
  await dialog(page).getByText('cordon ordered').waitFor();
  assert.deepEqual(server.orders[0].action, {verb: 'cordon', node: 'n6'});
});

for (const [name, reader, address, text] of [
  ['a stranger', null, '#/job/1', 'train runs'], ['a user, of another\'s job', {user: 'lin', isOperator: false}, '#/job/1', 'train runs'],
  ['a user, of a node', {user: 'lin', isOperator: false}, '#/now?node%3Dn6', '1 deadline is ahead'],
]) {
  play(`where the reader has no right there are no orders: ${name}`, address, async page => {
    await heading(page, text);
    await page.evaluate(() => fetch('/api/v1/session'));  // behind what the page has asked by then
    assert.equal(await page.getByRole('group', {name: 'Orders'}).count(), 0);
  }, reader);
}

play('a user has those of his own job', '#/job/3', async page => {
  await heading(page, 'md-lipid is frozen');
  await button(page, 'Resume').waitFor();
}, {user: 'lin', isOperator: false});
