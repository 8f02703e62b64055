// The calls of the API: one function a question. What goes wrong is an ApiError with the gRPC code in it.
import {ActionPlan, ActionRequest, Answers, Event, ExplainResponse, Job, ListJobsResponse, ListNodesResponse, PageOrder, PageOrdered, PageSession, Plan, PolicyInForce, SiteInfo, TrendsResponse} from '../../generated/api';
import {Action} from '../model/actions';
import {BadAnswer, decode} from './decode';
import {NO_LIST, withChanges} from './job_list';
import {Piece, PieceReader} from './pieces';

const ROOT = '/api/v1';
const CODES: Record<number, string> = {
  400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED', 404: 'NOT_FOUND', 429: 'RESOURCE_EXHAUSTED',
  409: 'FAILED_PRECONDITION', 421: 'PERMISSION_DENIED', 500: 'INTERNAL', 501: 'UNIMPLEMENTED', 503: 'UNAVAILABLE',
  502: 'UNREACHABLE', 504: 'UNREACHABLE',  // of `sidingctl page`: it is there, the controller is not
};

// Of a controller that stands by: the one that acts.
export interface Active {
  name: string;       // "pid 4711 on head1 (head1:7433)"
  host: string;       // that it is on
  page: string;       // where its page is for browsers of that host; '': it has none
  isHere: boolean;    // that host is the one that answered
}

export class ApiError extends Error {
  // code: as gRPC names it; UNREACHABLE: there was no answer; BAD ANSWER: it is not what the API says.
  constructor(readonly code: string, message: string, readonly active?: Active) {
    super(message);
  }
  // What was asked for is not there, or not for this reader.
  get isNotShown(): boolean {
    return this.isForbidden || ['NOT_FOUND', 'INVALID_ARGUMENT'].includes(this.code);
  }
  // It is not for this reader, whether it is there or not.
  get isForbidden(): boolean {
    return ['PERMISSION_DENIED', 'UNAUTHENTICATED'].includes(this.code);
  }
}

function activeIn(said: unknown): Active | undefined {
  if (typeof said !== 'object' || said === null) return undefined;
  const {name, host, page, is_here: isHere} = said as Record<string, unknown>;
  if (typeof name !== 'string' || typeof host !== 'string' || typeof page !== 'string') return undefined;
  return {name, host, page: /^https?:\/\//.test(page) ? page : '', isHere: isHere === true};
}

async function refusal(response: Response): Promise<ApiError> {
  const code = CODES[response.status] ?? `HTTP ${response.status}`;
  const text = await response.text().catch(() => '');
  try {
    const {error} = JSON.parse(text) as {error?: {message?: unknown; active?: unknown}};
    return new ApiError(code, typeof error?.message === 'string' ? error.message : '', activeIn(error?.active));
  } catch {
    return new ApiError(code, text.slice(0, 200));
  }
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(ROOT + path, {cache: 'no-cache', ...init});
  } catch (error) {
    throw new ApiError('UNREACHABLE', error instanceof Error ? error.message : '');
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

// What takes longer has failed: it would keep what is shown from moving, while the stream of events goes on. With every connection of
// the browser taken by other tabs a question is not even sent.
export const ANSWER_MS = 20_000;

// Calls `work` with a signal that is given at that time too, and when `outer` is. Browsers of 2022 have AbortSignal.timeout, and no way
// to join two signals.
async function inTime<T>(outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController(), end = (): void => over.abort();
  let isLate = false;
  const timer = setTimeout(() => { isLate = true; end(); }, ANSWER_MS);
  outer?.addEventListener('abort', end, {once: true});
  if (outer?.aborted) end();
  try {
    return await work(over.signal);
  } catch (error) {
    throw isLate ? new ApiError('UNREACHABLE', `no answer within ${ANSWER_MS / 1000} s`) : error;
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', end);
  }
}

// The server may answer what it has answered a moment ago to another page; it says how old that was when it was asked, in milliseconds.
export interface Dated {
  asOfMs: number;  // nothing in it is older: by performance.now()
}

const get = <K extends keyof Answers>(type: K, path: string, outer?: AbortSignal, init: RequestInit = {}): Promise<Answers[K] & Dated> => inTime(outer, async signal => {
  const askedMs = performance.now(), response = await ask(path, {...init, signal});
  try {
    return {...decode(type, await response.json()), asOfMs: askedMs - (Number(response.headers.get('Siding-Age')) || 0)};
  } catch (error) {
    if (error instanceof BadAnswer) throw new ApiError('BAD ANSWER', error.message);
    throw new ApiError('UNREACHABLE', 'the answer broke off');
  }
});

export const readSite = (signal?: AbortSignal): Promise<SiteInfo & Dated> => get('SiteInfo', '/site', signal);
export const readPolicy = (signal?: AbortSignal): Promise<PolicyInForce & Dated> => get('PolicyInForce', '/policy', signal);
export const readTrends = (signal?: AbortSignal): Promise<TrendsResponse & Dated> => get('TrendsResponse', '/trends', signal);
export const readNodes = (signal?: AbortSignal): Promise<ListNodesResponse & Dated> => get('ListNodesResponse', '/nodes', signal);
export type Jobs = {jobs: Job[]} & Dated;

// Answers the whole list each time. Of two questions at a time each has its own answer, whichever comes first.
export function listReader(path: string): (signal?: AbortSignal) => Promise<Jobs> {
  let list = NO_LIST;
  return async signal => {
    const known = list, after = known.version === '' ? '' : `&after=${encodeURIComponent(known.version)}`;
    const {asOfMs, ...changes} = await get('JobChanges', path + after, signal);
    const now = list = withChanges(known, changes);
    return {jobs: [...now.jobs.values()], asOfMs};
  };
}

export const readJobs = listReader('/jobs/changes?brief=true');
export const readEveryJob = listReader('/jobs/changes?all=true&brief=true');
export const readJob = (id: number, signal?: AbortSignal): Promise<ListJobsResponse & Dated> => get('ListJobsResponse', `/jobs/${id}`, signal);
export const readPlans = (id: number, signal?: AbortSignal): Promise<ExplainResponse & Dated> => get('ExplainResponse', `/jobs/${id}/plans`, signal);
// With what would have been done if one of those who make way had stayed, which costs the controller a plan for each.
export const readComparedPlans = (id: number, signal?: AbortSignal): Promise<ExplainResponse & Dated> => get('ExplainResponse', `/jobs/${id}/plans?compare=true`, signal);

// Of a request that is not submitted: see questionOf() in model/whatif.ts.
export const readPlan = (question: string): Promise<Plan & Dated> => get('Plan', `/plan?${question}`);
export const readSession = (signal?: AbortSignal): Promise<PageSession & Dated> => get('PageSession', '/session', signal);

// `token`: the session's. Names of fields are those of the .proto files, as protobuf's JSON takes them too.
const post = <K extends keyof Answers>(type: K, path: string, token: string, body: unknown): Promise<Answers[K] & Dated> =>
  get(type, path, undefined, {method: 'POST', headers: {'Content-Type': 'application/json', 'Siding-Token': token}, body: JSON.stringify(body)});
const requestOf = ({verb, job, node, tier}: Action): Partial<ActionRequest> => ({verb, job, node, tier});
export const planAction = (action: Action, token: string): Promise<ActionPlan & Dated> => post('ActionPlan', '/plans', token, requestOf(action));
// `sequence`: of what the order rests on. The same `key` again does nothing again.
export const giveOrder = (action: Action, sequence: number, key: string, token: string): Promise<PageOrdered & Dated> => {
  const order: Omit<PageOrder, 'action'> & {action: Partial<ActionRequest>} = {action: requestOf(action), ifUnchanged: sequence, key};
  return post('PageOrdered', '/orders', token, order);
};

// Calls `heard` with each piece that comes, until the stream ends. `after`: the event behind which it begins; undefined: from now on.
export async function followEvents(after: number | undefined, heard: (piece: Piece) => void, signal: AbortSignal): Promise<void> {
  const response = await ask(after === undefined ? '/events' : `/events?after=${after}`, {signal});
  const reader = new PieceReader(), text = new TextDecoder(), body = response.body?.getReader();
  for (;;) {
    let piece;
    try {
      piece = await body?.read();
    } catch {
      throw new ApiError('UNREACHABLE', 'the stream of events broke off');
    }
    if (piece === undefined || piece.done) return;
    heard(reader.read(text.decode(piece.value, {stream: true})));
  }
}

// Events behind `after`, up to and with `until`.
export const readEvents = (after: number, until: number, outer: AbortSignal): Promise<Event[]> => inTime(outer, async signal => {
  const enough = new AbortController(), events: Event[] = [];
  signal.addEventListener('abort', () => enough.abort(), {once: true});
  await followEvents(after, piece => {
    events.push(...piece.events.filter(event => event.seq <= until));
    if (piece.seq >= until) enough.abort();
  }, enough.signal).catch((error: unknown) => {
    if (!enough.signal.aborted || signal.aborted) throw error;
  });
  return events;
});
