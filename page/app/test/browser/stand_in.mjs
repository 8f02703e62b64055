// Stands in for the controller in browser tests: the built page, and the API's answers of an invented cluster. It can be made to refuse,
// to be slow and to go away, which a real one does not do on request.
import {EventEmitter, on, once} from 'node:events';
import {createReadStream, existsSync} from 'node:fs';
import {createServer} from 'node:http';
import {extname, join} from 'node:path';

const TYPES = {'.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.txt': 'text/plain; charset=utf-8'};
export const CSP = 'default-src \'none\'; script-src \'self\'; style-src \'self\'; connect-src \'self\'; img-src \'self\'; base-uri \'none\'; form-action \'none\'; frame-ancestors \'none\'';
const ENDED = new Set(['done', 'failed', 'cancelled']);

// Names of fields as the .proto files have them.
function asProto(value) {
  if (Array.isArray(value)) return value.map(asProto);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`), asProto(each)]));
}

export class StandIn {
  constructor(folder, cluster) {
    this.folder = folder;
    this.cluster = cluster;
    this.refusal = undefined;  // {status, message, and what else the error says} instead of any answer
    this.stranger = false;     // plans, what they say of a job, and events of jobs are not shown
    this.privateJobs = false;
    this.user = '';            // who asks
    this.policy = {};          // what is said of it besides private_jobs
    this.trends = {};          // a TrendsResponse, or {status, message}
    this.plan = () => undefined;  // of a request that is not submitted, by the fields of the question: a Plan, or {status, message}
    this.silent = false;       // takes questions and answers none
    this.mute = false;         // takes questions and answers none, but its streams live
    this.ageMs = 0;            // of its answers
    this.reader = undefined;   // {user, isOperator}: who may give orders; undefined: it is read only
    this.orders = [];          // that have been given
    this.refusePlans = undefined;  // {status, message}: of those of orders
    this.refuseOrder = undefined;  // {status, message}: of the next one, which is not given
    this.breaksOrders = false; // they are not answered. A browser sends them again by itself, on a connection that was used before
    this.streams = new Set();
    this.told = new Map();     // version of a list of jobs -> job -> what was told of it; another process does not know them
    this.lives = 0;
    this.news = new EventEmitter();  // asked: a question has come; streams: one has begun or ended
    this.port = 0;
  }

  async listen() {
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise(done => this.server.listen(this.port, '127.0.0.1', done));
    this.port = this.server.address().port;
    return `http://127.0.0.1:${this.port}/`;
  }

  // As if it was killed; listen() brings it back at the same address.
  async goAway() {
    this.streams.clear();
    this.told.clear();
    ++this.lives;
    const closed = new Promise(done => this.server.close(done));
    this.server.closeAllConnections();
    await closed;
  }

  // To the pages that follow; the cluster has it already.
  tell(...events) {
    for (const stream of this.streams) for (const event of events.filter(each => this.shows(each))) stream.write(`id: ${event.seq}\ndata: ${JSON.stringify(asProto(event))}\n\n`);
  }

  // A sign of life, which says up to where all has been told.
  beat() {
    for (const stream of this.streams) stream.write(this.mark());
  }

  mark(seq = this.cluster.events.length) {
    return `: here\nid: ${seq}\n\n`;
  }

  // The next question of which this is true.
  async asked(isIt, patienceMs) {
    for await (const [question] of on(this.news, 'asked', {signal: AbortSignal.timeout(patienceMs)})) if (isIt(question)) return question;
    return undefined;
  }

  async streamsAre(count, patienceMs) {
    while (this.streams.size !== count) await once(this.news, 'streams', {signal: AbortSignal.timeout(patienceMs)});
  }

  answer(request, response) {
    const url = new URL(request.url, 'http://page');
    response.setHeader('Content-Security-Policy', CSP);
    if (!url.pathname.startsWith('/api/')) return this.file(url.pathname, response);
    this.news.emit('asked', url);
    if (this.silent || (this.mute && !url.pathname.endsWith('/events'))) return undefined;
    if (this.refusal !== undefined) return this.json(response, {error: this.refusal}, this.refusal.status);
    if (request.method === 'POST') return this.post(url.pathname, request, response);
    return this.api(url.pathname.replace('/api/v1/', '').split('/'), url.searchParams, response);
  }

  api([what, id, more], query, response) {
    const {cluster} = this, shown = each => (each === undefined || this.mayAct(each) ? each : {...each, plan: undefined}), job = shown(cluster.jobs.get(Number(id)));
    if (what === 'site') return this.json(response, {nowUs: String(Math.round(Date.now() * 1000)), newestEvent: String(cluster.events.length), user: this.user, ...this.reader});
    if (what === 'session' && this.reader !== undefined) return this.json(response, {orderToken: 'the-token'});
    if (what === 'policy') return this.json(response, {yaml: `private_jobs: ${this.privateJobs}\n`, ...this.policy});
    if (what === 'trends') return this.planned(this.trends, response);
    if (what === 'plan') return this.planned(this.plan(query), response);
    if (what === 'nodes') return this.json(response, {nodes: cluster.nodes});
    if (what === 'events') return this.follow(query.get('after'), response);
    if (what !== 'jobs') return this.refuse(response, 404, 'no such question');
    const listed = [...cluster.jobs.values()].filter(each => query.get('all') === 'true' || !ENDED.has(each.state)).map(shown);
    if (id === undefined) return this.json(response, {jobs: listed});
    if (id === 'changes') return this.json(response, this.changes(query.get('after'), listed));
    if (job === undefined) return this.refuse(response, 404, `job ${id} is not known`);
    if (more === 'plans' && !this.mayAct(job)) return this.refuse(response, 403, 'not yours');
    return this.json(response, more === 'plans' ? {job, plans: cluster.plans.get(Number(id)) ?? []} : {jobs: [job]});
  }

  // Since that version; of one that is not known, all.
  changes(after, jobs) {
    const before = this.told.get(after), now = new Map(jobs.map(job => [job.id, JSON.stringify(job)])), version = `${this.lives}-${this.told.size + 1}`;
    this.told.set(version, now);
    const changed = jobs.filter(job => before?.get(job.id) !== now.get(job.id));
    return {version, whole: before === undefined, jobs: changed, gone: [...before?.keys() ?? []].filter(id => !now.has(id))};
  }

  planned(plan, response) {
    if (plan?.status !== undefined) return this.refuse(response, plan.status, plan.message);
    return this.json(response, plan ?? {});
  }

  async post(path, request, response) {
    let text = '';
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    if (request.headers['siding-token'] !== 'the-token') return this.refuse(response, 403, 'not the token of this session');
    if (path === '/api/v1/plans' && this.refusePlans !== undefined) return this.refuse(response, this.refusePlans.status, this.refusePlans.message);
    if (path === '/api/v1/plans') return this.json(response, this.cluster.actionPlan(body));
    const refusal = this.refuseOrder;
    this.refuseOrder = undefined;
    if (this.breaksOrders) return request.socket.destroy();
    if (refusal !== undefined) return this.refuse(response, refusal.status, refusal.message);
    if (this.orders.some(each => each.key === body.key)) return this.json(response, {});
    this.orders.push(body);
    this.json(response, {});
    return this.tell(this.cluster.event(0, body.action.job ?? 0, `order-${body.action.verb}`, `${body.action.verb} ordered`));
  }

  follow(after, response) {
    const newest = this.cluster.events.length, from = after === null ? newest : Math.min(Number(after), newest);
    response.writeHead(200, {'Content-Type': 'text/event-stream'});
    response.write(this.mark(from));
    this.streams.add(response);
    this.news.emit('streams');
    response.on('close', () => {
      this.streams.delete(response);
      this.news.emit('streams');
    });
    for (const event of this.cluster.events.slice(from).filter(each => this.shows(each))) response.write(`id: ${event.seq}\ndata: ${JSON.stringify(asProto(event))}\n\n`);
    if (from < newest) response.write(this.mark());
  }

  refuse(response, status, message) {
    this.json(response, {error: {status, message}}, status);
  }

  // On the job; its plans are for those who may.
  mayAct(job) {
    return !this.stranger && (this.reader === undefined || this.reader.isOperator === true || this.reader.user === job.spec.user);
  }

  shows(event) {
    return !this.stranger || event.job === '0';
  }

  json(response, body, status = 200) {
    response.writeHead(status, {'Content-Type': 'application/json', 'Siding-Age': String(this.ageMs)});
    response.end(JSON.stringify(asProto(body)));
  }

  file(path, response) {
    const name = join(this.folder, path === '/' ? 'index.html' : path);
    if (!existsSync(name)) return response.writeHead(404).end();
    response.writeHead(200, {'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream'});
    return createReadStream(name).pipe(response);
  }
}
