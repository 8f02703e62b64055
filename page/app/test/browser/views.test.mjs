// Each view in each state, light and dark, wide and on a phone: no finding of axe, nothing that scrolls sideways, no error.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {blankForMany, drawn, findings, hasBrowser, heading, launch, picture, problems, resize} from './browser.mjs';
import {Cluster, atRisk, governed, large, plan, policy, preempted, replanned, trends} from './cluster.mjs';
import {StandIn} from './stand_in.mjs';

const PAGE = process.env.SIDING_PAGE ?? new URL('../../dist', import.meta.url).pathname;
// Anew: the address is opened in this look. In the others its window changes, as that of somebody who drags its border; there is one opened
// anew on each side of the width at which the script draws something else (src/ui/narrow.ts).
const LOOKS = [
  {name: 'light', width: 1440, scheme: 'light', anew: true, axe: true}, {name: 'dark', width: 1000, scheme: 'dark'},
  {name: 'phone', width: 390, height: 844, scheme: 'dark', anew: true, axe: true}, {name: 'narrowest', width: 320, height: 640, scheme: 'light'},
];
const VIEWS = [
  // name, cluster, address, heading, settings of the stand-in, and what else is there before it is looked at
  ['now', preempted, '#/now', 'The deadline is safe'],
  ['now-late', atRisk, '#/now', '1 of 1 deadline cannot be met'],
  ['now-node', preempted, '#/now?node%3Dn5', 'The deadline is safe'],
  ['now-120', () => large(120, 300), '#/now', 'No deadline is ahead'],
  ['now-1000', () => large(1000, 10_000), '#/now', 'No deadline is ahead'],
  ['now-new', () => new Cluster(), '#/now', 'No node has connected yet'],
  ['now-hidden', () => Object.assign(new Cluster(), {nodes: preempted().nodes}), '#/now', 'No jobs are shown to you', {privateJobs: true}],
  ['jobs', preempted, '#/jobs', 'Jobs'],
  ['jobs-filtered', preempted, '#/jobs?state%3Aparked', 'Jobs'],
  ['jobs-unreadable', preempted, '#/jobs?state%3Anone', 'Jobs'],
  ['jobs-10000', () => large(1000, 10_000), '#/jobs', 'Jobs'],
  ['job-parked', preempted, '#/job/2', 'cfd-wing is parked'],
  ['job-frozen', preempted, '#/job/3', 'md-lipid is frozen'],
  ['job-back', preempted, '#/job/4', 'infer runs'],
  ['job-waits', preempted, '#/job/6', 'waiter waits for nodes'],
  ['job-stranger', preempted, '#/job/2', 'cfd-wing is parked', {stranger: true}],
  ['job-unknown', preempted, '#/job/9', 'Job 9 is not known'],
  ['preemptions', preempted, '#/preemptions', 'Preemptions'],
  ['preemption', preempted, '#/preemption/7', 'beam-steer started 36 s before its deadline'],
  ['preemption-planned-again', replanned, '#/preemption/7?plan%3D1', 'beam-steer started 36 s before its deadline'],
  ['preemption-ahead', preempted, '#/preemption/8', 'storm waits for its nodes'],
  ['preemption-stranger', preempted, '#/preemption/7', 'beam-steer started 36 s before its deadline', {stranger: true}],
  ['whatif', preempted, '#/whatif?nodes%3D4%26by%3D%2B20s', 'What if', {user: 'ada', plan}, 'Sooner or later'],
  ['whatif-refused', preempted, '#/whatif?nodes%3D9', 'What if', {user: 'ada', plan}, 'It would be refused'],
  ['whatif-too-soon', preempted, '#/whatif?nodes%3D4%26by%3D%2B2s', 'What if', {user: 'ada', plan}, 'It would be refused'],
  ['whatif-not-allowed', preempted, '#/whatif?labels%3Daccount%3Dweather', 'What if', {user: 'ada', plan}, 'It would be refused'],
  ['whatif-unreadable', preempted, '#/whatif?nodes%3Dmany%26by%3Dsoon', 'What if', {user: 'ada', plan}, 'The request cannot be read yet.'],
  ['whatif-busy', preempted, '#/whatif', 'What if', {user: 'ada', plan: () => ({status: 429, message: 'plans have taken 2.0s, and may take a fifth of the time'})}, 'asked again by itself'],
  ['whatif-stranger', preempted, '#/whatif', 'What if', {}, 'Plans name jobs'],
  ['trends', preempted, '#/trends', 'Trends', {trends: trends()}, 'deadlines met'],
  ['trends-days', preempted, '#/trends?90d', 'Trends', {trends: trends()}, 'deadlines met'],
  ['trends-new', preempted, '#/trends', 'Trends', {trends: trends(3)}, 'deadlines met'],
  ['trends-nothing', preempted, '#/trends', 'Trends', {}, 'No order freed nodes in these 7 days.'],
  ['trends-not-told', preempted, '#/trends', 'Trends', {trends: {status: 404, message: 'no such address'}}, 'this controller does not tell of them'],
  ['policy', governed, '#/policy?methods%2Fcampaign', 'Policy', {user: 'ada', policy: policy()}, 'loaded by ada'],
  ['policy-defaults', preempted, '#/policy', 'Policy', {}, 'No change is known here'],
  ['policy-not-in-force', governed, '#/policy?L99', 'Policy', {policy: {...policy(), problem: '/etc/siding/policy.yaml:2: margin: expected a duration'}}, 'There is no line L99'],
];

let browser, page;
before(async () => {
  if (!hasBrowser) return;
  browser = await launch();
  page = await blankForMany(browser);
});
after(() => browser?.close());

for (const [name, cluster, address, text, settings, seen] of VIEWS) {
  test(`${name}: nothing to find`, {skip: !hasBrowser && 'there is no chromium'}, async () => {
    const server = Object.assign(new StandIn(PAGE, cluster()), settings), url = await server.listen();
    try {
      for (const look of LOOKS) {
        await resize(page, look);
        if (look.anew) {
          await page.goto('about:blank');  // or what is opened would be a change of the same document
          page.errors = [];
          await page.goto(url + address);
        }
        await heading(page, text);
        if (seen !== undefined) await page.getByText(seen).first().waitFor();
        await page.waitForLoadState('load');
        await drawn(page);
        await picture(page, `${name}-${look.name}`);
        assert.deepEqual([...await problems(page), ...(look.axe ? await findings(page) : [])], [], look.name);
      }
    } finally {
      await server.goAway();
    }
  });
}
