// An invented cluster for the browser tests, in the shapes of the API's JSON as protobuf writes it: what the views have to show in states
// that a real one is in for a moment only, or only with a thousand nodes.

const SECOND = 1_000_000;
export const us = seconds => String(Math.round(seconds * SECOND));

const spec = more => ({nodes: 1, user: 'ada', perNode: {slots: 2, memory: '1073741824'}, methods: ['SUSPEND', 'CHECKPOINT', 'KILL'], ...more});

export class Cluster {
  constructor(nowS = Date.now() / 1000) {
    this.t0 = nowS;
    this.nodes = [];
    this.jobs = new Map();
    this.plans = new Map();
    this.events = [];
    this.slow = false;  // orders take longer than they did
  }

  // What an order of this would do.
  actionPlan({verb, job, node, tier}) {
    const of = this.jobs.get(job), nowS = Date.now() / 1000;
    const plan = {sequence: String(this.events.length + 1), madeUs: us(nowS), verb, deadlines: []};
    for (const each of this.jobs.values()) {
      if (each.state !== 'pending' || each.spec.startByUs === undefined) continue;
      const byS = Number(each.spec.startByUs) / SECOND;
      plan.deadlines.push({request: each.id, name: each.spec.name, startByUs: each.spec.startByUs, beforeUs: us(byS - 290), afterUs: us(this.slow ? byS + 12 : byS - 290)});
    }
    if (verb === 'cordon') return {...plan, nodes: [node], stay: this.nodes.find(each => each.name === node).jobs};
    return {
      ...plan, job: String(job), jobName: of.spec.name, nodes: of.nodes, method: verb === 'suspend' ? 'SUSPEND' : 'CHECKPOINT', tier: tier ?? 'SHARED', bytes: String(19e9),
      doneUs: us(nowS + (this.slow ? 80 : 12)), lossNodeSeconds: this.slow ? 96 : 24.5, target: verb === 'migrate' ? ['n8'] : [],
    };
  }

  node(name, more = {}) {
    const gib = 1024 ** 3;
    const node = {
      name, state: 'up', capacity: {slots: 2, memory: String(64 * gib)}, used: {}, ramAvailable: String(22 * gib), localDiskFree: String(410 * gib),
      shared: {dump: {bytesPerSecond: 6.5e8}, restore: {bytesPerSecond: 1.2e9}}, lastHeardUs: us(this.t0 - 1), jobs: [], suspendedJobs: [], ...more,
    };
    this.nodes.push(node);
    return node;
  }

  job(id, name, state, more = {}) {
    const {spec: specMore, ...rest} = more;
    const job = {id: String(id), spec: spec({name, ...specMore}), state, nodes: [], submittedUs: us(this.t0 - 3600), stateSinceUs: us(this.t0 - 60), ...rest};
    this.jobs.set(id, job);
    for (const node of this.nodes.filter(each => job.nodes.includes(each.name))) {
      (state === 'suspended' ? node.suspendedJobs : node.jobs).push(String(id));
      if (state !== 'suspended') node.used = {slots: 2};
    }
    return job;
  }

  event(atS, job, kind, text, more = {}) {
    const event = {seq: String(this.events.length + 1), atUs: us(this.t0 + atS), job: String(job), kind, text, ...more};
    this.events.push(event);
    return event;
  }
}

const reason = (frees, lost, how) => `frees ${frees} for ${lost} node-seconds (${how})`;

// One request was met: a job was checkpointed for it and is parked, one is frozen, one is back. Another request is ahead.
export function preempted() {
  const c = new Cluster();
  for (let i = 1; i <= 8; ++i) c.node(`n${i}`);
  c.job(1, 'train', 'running', {nodes: ['n1'], firstStartedUs: us(c.t0 - 3500)});
  c.job(2, 'cfd-wing', 'parked', {
    stateSinceUs: us(c.t0 - 100), preemptions: 1, lostNodeSeconds: 212.5, madeWayFor: '7', checkpoint: '2.1', waitsFor: 'request 7 has its nodes',
    back: {predictedUs: us(c.t0 + 200), latestUs: us(c.t0 + 640), nodes: ['n2', 'n3'], because: {kind: 'EXPECTED', job: '7', node: 'n3'}}, spec: {nodes: 2, user: 'okoro'},
  });
  c.job(3, 'md-lipid', 'suspended', {nodes: ['n5'], stateSinceUs: us(c.t0 - 115), preemptions: 1, lostNodeSeconds: 115, madeWayFor: '7', reason: 'while request 7 has its nodes', back: {because: {kind: 'NO_END', job: '7', node: 'n5', image: true}}, spec: {user: 'lin'}});
  c.job(4, 'infer', 'running', {nodes: ['n6'], stateSinceUs: us(c.t0 - 40), preemptions: 1, lostNodeSeconds: 74});
  c.job(5, 'long', 'running', {nodes: ['n7'], stateSinceUs: us(c.t0 - 9000), spec: {methods: []}});
  c.job(6, 'waiter', 'pending', {waitsFor: '4 nodes with 2 free slots', spec: {nodes: 4}});
  const onDemand = {onDemand: true, user: 'mara', methods: []};
  c.job(7, 'beam-steer', 'running', {nodes: ['n2', 'n3', 'n4', 'n5'], submittedUs: us(c.t0 - 120), firstStartedUs: us(c.t0 - 108), stateSinceUs: us(c.t0 - 108), spec: {...onDemand, nodes: 4, startByUs: us(c.t0 - 72)}});
  c.job(8, 'storm', 'pending', {plan: {feasible: true, predictedStartUs: us(c.t0 + 0.4), marginUs: us(299.6), plans: 1, victims: 3, victimsAway: 1}, submittedUs: us(c.t0 - 20), stateSinceUs: us(c.t0 - 20), spec: {...onDemand, startByUs: us(c.t0 + 300)}});
  const released = s => us(c.t0 - 120 + s);
  c.plans.set(7, [{
    request: '7', feasible: true, exact: true, nodes: ['n2', 'n3', 'n4', 'n5'], predictedStartUs: released(12.8), lossNodeSeconds: 161, startByUs: us(c.t0 - 72), decidedUs: released(0.1),
    steps: [
      {job: '2', jobName: 'cfd-wing', method: 'CHECKPOINT', tier: 'SHARED', nodes: ['n2', 'n3'], predictedReleaseUs: released(12.8), bytes: String(61e9), lossNodeSeconds: 83, reason: reason('2 nodes', '83.0', 'to suspend it there is too little RAM on n3')},
      {job: '3', jobName: 'md-lipid', method: 'SUSPEND', nodes: ['n5'], predictedReleaseUs: released(2.6), lossNodeSeconds: 9.2, reason: reason('1 node', '9.2', 'to checkpoint it would cost 61.0')},
      {job: '4', jobName: 'infer', method: 'CHECKPOINT', tier: 'SHARED', throughRam: true, nodes: ['n4'], predictedReleaseUs: released(3.4), bytes: String(19e9), lossNodeSeconds: 68.8, reason: reason('1 node', '68.8', 'to kill it would cost 4,010')},
    ],
    kept: [
      {job: '1', jobName: 'train', rule: 'NOT_NEEDED', reason: 'not needed: would free 1 node for 104.0 node-seconds (checkpoint)'},
      {job: '5', jobName: 'long', rule: 'PROTECTED', policyKey: 'preemptible', jobClass: 'campaign', reason: 'class campaign allows no method'},
    ],
    keptGroups: [{rule: 'NOT_NEEDED', jobs: 2311}, {rule: 'PROTECTED', policyKey: 'preemptible', jobClass: 'campaign', jobs: 1}],
    without: [
      {job: '2', feasible: false},
      {job: '3', feasible: true, jobs: ['1', '2', '4'], lossNodeSeconds: 255.8},
      {job: '4', feasible: true, jobs: ['1', '2', '3'], lossNodeSeconds: 196.2, nextBest: true},
    ],
  }]);
  c.plans.set(8, [{request: '8', feasible: true, exact: true, nodes: ['n8'], predictedStartUs: us(c.t0 + 0.4), startByUs: us(c.t0 + 300), decidedUs: us(c.t0 - 20)}]);
  c.event(-3600, 1, 'submitted', 'batch job \'train\' of ada, 1 node');
  c.event(-120, 7, 'submitted', 'on-demand job \'beam-steer\' of mara, 4 nodes');
  c.event(-119.9, 7, 'planned', 'will get n2,n3,n4,n5 from 3 jobs');
  const order = (job, kind, s, text, more = {}) => c.event(-119.8, job, kind, `${text} for request 7`, {request: '7', predictedUs: released(s), ...more});
  order(2, 'order-dump', 12.8, 'checkpoint 2.1 to shared storage ordered', {checkpoint: '2.1'});
  order(3, 'order-suspend', 2.6, 'freeze ordered');
  order(4, 'order-suspend', 3.4, 'freeze ordered, then a checkpoint to shared storage');
  c.event(-117.6, 3, 'frozen', 'frozen in RAM');
  c.event(-116.9, 4, 'frozen', 'frozen in RAM');
  c.event(-116.8, 4, 'order-dump', 'checkpoint 4.1 to shared storage ordered', {checkpoint: '4.1'});
  c.event(-109.6, 2, 'commit', 'every rank dumped, 56.8 GiB', {checkpoint: '2.1', bytes: String(61e9)});
  c.event(-108.8, 2, 'released', 'left its nodes, waits with its work saved', {nodes: ['n2', 'n3']});
  c.event(-108.7, 7, 'place', 'placed on n2,n3,n4,n5', {nodes: ['n2', 'n3', 'n4', 'n5']});
  c.event(-108, 7, 'started', 'running');
  c.event(-105.8, 4, 'commit', 'every rank dumped, 17.7 GiB', {checkpoint: '4.1', bytes: String(19e9)});
  c.event(-105.2, 4, 'released', 'left its nodes, waits with its work saved', {nodes: ['n4']});
  c.event(-46, 4, 'place', 'to be restored on n6 from checkpoint 4.1', {nodes: ['n6'], checkpoint: '4.1'});
  c.event(-40, 4, 'restored', 'running again from checkpoint 4.1', {checkpoint: '4.1'});
  c.event(-20, 8, 'submitted', 'on-demand job \'storm\' of mara, 1 node');
  return c;
}

// A request that was planned three times: jobs left in between.
export function replanned() {
  const c = preempted(), [first] = c.plans.get(7), later = (s, steps, lossNodeSeconds) => ({...first, decidedUs: us(c.t0 - 120 + s), without: [], steps, lossNodeSeconds});
  c.plans.set(7, [first, later(1.5, first.steps.slice(0, 1), 83), {...later(3, [], 0), without: []}]);
  return c;
}

// What is answered to a request that is not submitted: each node more costs more, and there are eight; later costs less.
export function plan(query) {
  const nowS = Date.now() / 1000, nodes = Number(query.get('nodes') ?? 1), by = query.get('start_by_us');
  if (query.getAll('label').includes('account=weather')) return {status: 409, message: 'account weather may not ask for nodes by a time'};
  if (nodes > 8) return {feasible: false, refusal: `needs ${nodes} nodes, the cluster has 8`};
  const startBy = by === 'earliest' ? us(nowS + 4) : by, inS = Number(startBy) / 1e6 - nowS, lost = nodes === 1 ? 0 : 40 * nodes / Math.sqrt(Math.max(4, inS));
  if (inS < 3.9) return {feasible: false, startByUs: startBy, refusal: `${nodes} nodes cannot be free in time: 2 can`, earliestUs: us(nowS + 4)};
  const gone = {job: '2', jobName: 'cfd-wing', method: 'CHECKPOINT', tier: 'SHARED', nodes: ['n2', 'n3'], predictedReleaseUs: us(nowS + 3), bytes: String(61e9), lossNodeSeconds: lost, reason: 'frees 2 nodes in 3.00s'};
  return {
    feasible: true, exact: true, nodes: Array.from({length: nodes}, (_, i) => `n${i + 1}`), startByUs: startBy, predictedStartUs: us(nowS + (lost > 0 ? 3 : -0.01)), lossNodeSeconds: lost, steps: lost > 0 ? [gone] : [],
    kept: [{job: '5', jobName: 'long', rule: 'PROTECTED', policyKey: 'methods', jobClass: 'campaign', reason: 'class campaign allows no method'}],
    keptGroups: [{rule: 'PROTECTED', policyKey: 'methods', jobClass: 'campaign', jobs: 1}],
  };
}

const DEFAULTS = 'strategy: least-loss\nmargin: 1s\nmin_runtime: 0s\noperators: [root]\nprivate_jobs: true\n';
const OWN = 'strategy: least-loss\nmargin: 2s\nmin_runtime: 5m\nclasses:\n  - {name: campaign, match: {account: [climate]}, methods: []}\non_demand:\n  - {match: {account: [beamline]}, max_nodes: 1000}\noperators: [root, ada]\nprivate_jobs: true\n';
export const policy = () => ({yaml: OWN, defaults: DEFAULTS, file: '/etc/siding/policy.yaml', loadedUs: us(Date.now() / 1000 - 100)});

// The policy was changed twice, and a request that is ahead leaves a job alone by it.
export function governed() {
  const c = preempted();
  c.event(-15, 0, 'policy-changed', 'the policy file has changed: -margin: 1s; +margin: 2s', {changes: ['-margin: 1s', '+margin: 2s']});
  c.event(-10, 0, 'policy-changed', 'the policy was loaded again by ada', {by: 'ada', changes: ['-operators: [root]', '+operators: [root, ada]']});
  c.plans.get(8)[0].keptGroups = [{rule: 'PROTECTED', policyKey: 'methods', jobClass: 'campaign', jobs: 1}, {rule: 'MIN_RUNTIME', policyKey: 'min_runtime', jobs: 3}];
  return c;
}

// Numbers of an hour or a day that are the same in each test: 0 to 1.
const noise = (n, salt) => Math.abs(Math.sin(12.9898 * n + 78.233 * salt) * 43758.5453) % 1;
const MIB = 1024 ** 2;
function trend(beginsS, endsS, n, scale) {
  const x = salt => noise(n, salt), many = (most, salt) => Math.floor(x(salt) * most * scale), ratio = 0.75 + 0.4 * x(9), orders = many(9, 8), images = [1 + many(6, 10), 1 + many(9, 11)];
  const lost = [['suspend', 900 * x(4)], ['checkpoint', 2400 * x(5)], ['app', n % 3 === 0 ? 500 * x(6) : 0], ['kill', n % 11 === 0 ? 6000 * x(7) : 0], ['failure', n % 29 === 0 ? 4000 : 0]];
  const written = (count, speed) => ({images: count, bytes: String(Math.round(count * 9000 * MIB)), seconds: count * 9000 / speed});
  return {
    beginsUs: us(beginsS), endsUs: us(endsS), met: String(many(7, 1)), missed: String(n % 17 === 0 ? 1 : 0), refused: String(many(2, 3)), preemptions: String(orders),
    lost: lost.filter(([, each]) => each > 0).map(([how, each]) => ({how, nodeSeconds: each * scale})),
    releases: orders === 0 ? {} : {count: String(orders), tenth: 0.7 * ratio, median: ratio, ninetieth: (n % 23 === 0 ? 4 : 1.25) * ratio},
    writes: [{tier: 'LOCAL', ...written(images[0], 1700 + 500 * x(12))}, ...(n % 4 === 0 ? [] : [{tier: 'SHARED', ...written(images[1], n % 31 < 4 ? 160 : 600 + 90 * x(13))}])],
  };
}
const sum = (list, of) => list.reduce((all, each) => all + Number(of(each) ?? 0), 0);
function together(list) {
  const total = key => String(sum(list, each => each[key])), kinds = ['suspend', 'checkpoint', 'app', 'kill', 'failure'];
  const orders = sum(list, each => each.releases.count);
  return {
    beginsUs: list[0].beginsUs, endsUs: list.at(-1).endsUs, met: total('met'), missed: total('missed'), refused: total('refused'), preemptions: total('preemptions'),
    lost: kinds.map(how => ({how, nodeSeconds: sum(list, each => each.lost.find(one => one.how === how)?.nodeSeconds)})).filter(each => each.nodeSeconds > 0),
    releases: orders === 0 ? {} : {count: String(orders), tenth: 0.61, median: 0.97, ninetieth: 1.3},
    writes: ['LOCAL', 'SHARED'].map(tier => {
      const all = list.flatMap(each => each.writes.filter(one => one.tier === tier));
      return {tier, images: sum(all, each => each.images), bytes: String(sum(all, each => each.bytes)), seconds: sum(all, each => each.seconds)};
    }).filter(each => each.images > 0),
  };
}

// 7 days and 90, the nights without anything; `hours` of them.
export function trends(hours = 168) {
  const hourS = 3600, dayS = 24 * hourS, endsS = (Math.floor(Date.now() / 1000 / hourS) + 1) * hourS, daysEndS = (Math.floor(Date.now() / 1000 / dayS) + 1) * dayS;
  const list = Array.from({length: hours}, (_, i) => hours - i).filter(n => hours < 10 || n % 24 < 16).map(n => trend(endsS - n * hourS, endsS - (n - 1) * hourS, n, 1));
  const days = Array.from({length: 80}, (_, i) => 80 - i).map(n => trend(daysEndS - n * dayS, daysEndS - (n - 1) * dayS, n, 12));
  return {hours: list, days, week: together(list), quarter: together(days)};
}

// A deadline cannot be met.
export function atRisk() {
  const c = preempted();
  c.nodes[7].state = 'down';
  c.jobs.get(8).plan = {refusal: 'the agent of n8 is away, and its job cannot be seen to leave', plans: 2};
  c.plans.set(8, [{request: '8', feasible: false, refusal: 'the agent of n8 is away, and its job cannot be seen to leave', startByUs: us(c.t0 + 300)}]);
  return c;
}

const STATES = ['running', 'running', 'running', 'running', 'running', 'pending', 'pending', 'parked', 'suspended', 'dumping'];
export function large(nodes, jobs) {
  const c = new Cluster();
  for (let i = 1; i <= nodes; ++i) c.node(`r${String(Math.ceil(i / 40)).padStart(2, '0')}n${String((i - 1) % 40 + 1).padStart(2, '0')}`, i % 97 === 0 ? {state: 'cordoned'} : i % 331 === 0 ? {state: 'down'} : {});
  for (let id = 1; id <= jobs; ++id) {
    const state = STATES[id % STATES.length], node = c.nodes[id % nodes];
    c.job(id, `job-${id % 50}-${id}`, state, {nodes: ['pending', 'parked'].includes(state) || id > nodes ? [] : [node.name], spec: {user: `user${id % 12}`}});
  }
  c.event(-5, 1, 'note', 'all of it is invented');
  return c;
}
