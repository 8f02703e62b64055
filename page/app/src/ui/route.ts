// Addresses: each view has one, which can be sent to a colleague.
import {computed, signal} from '@preact/signals';

export interface Route {
  view: string;   // "jobs"
  id: string;     // "17" of #/job/17
  query: string;  // behind the ?, unescaped
}

export function parseRoute(hash: string): Route {
  const [path = '', ...query] = hash.replace(/^#\/?/, '').split('?');
  const [view = '', id = ''] = path.split('/');
  const text = query.join('?');
  try {
    return {view: view || 'now', id, query: decodeURIComponent(text)};
  } catch {
    return {view: view || 'now', id, query: text};
  }
}

const hash = signal(location.hash);
export const route = computed(() => parseRoute(hash.value));
addEventListener('hashchange', () => { hash.value = location.hash; });

export function go(to: string): void {
  location.hash = to;
}

// The same view with another text behind the ?, without a step in the browser's history.
export function replaceQuery(query: string): void {
  const {view, id} = route.value;
  history.replaceState(null, '', `#/${view}${id === '' ? '' : `/${id}`}${query === '' ? '' : `?${encodeURIComponent(query)}`}`);
  hash.value = location.hash;
}

export const jobAddress = (id: number): string => `#/job/${id}`;
export const requestAddress = (id: number): string => `#/preemption/${id}`;
export const nodeAddress = (name: string): string => `#/now?${encodeURIComponent(`node=${name}`)}`;
// `rule`: "min_runtime", or of a class "min_runtime/campaign".
export const policyAddress = (rule: string): string => `#/policy?${encodeURIComponent(rule)}`;
export const jobsAddress = (filter: string): string => `#/jobs?${encodeURIComponent(filter)}`;
