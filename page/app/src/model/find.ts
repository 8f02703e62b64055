// What the Find dialog finds.
import {Job, Node} from '../../generated/api';
import {isOnDemand, nameOf, userOf} from './jobs';

export interface Hit {
  kind: 'job' | 'request' | 'node' | 'number';
  id: number;  // 0: a node
  name: string;
  note: string;
}

const MOST = 7;

// The best first: a number that is meant, then names that begin so, then what else has it.
export function find(text: string, jobs: readonly Job[], nodes: readonly Node[]): Hit[] {
  const wanted = text.trim().toLowerCase();
  const scored: [number, Hit][] = [];
  for (const job of jobs) {
    const name = nameOf(job).toLowerCase(), number = String(job.id);
    const score = number === wanted ? 0 : name.startsWith(wanted) ? 2 : number.startsWith(wanted) ? 3 : name.includes(wanted) ? 4 : userOf(job).toLowerCase().includes(wanted) ? 5 : -1;
    if (score < 0) continue;
    const kind: Hit['kind'] = isOnDemand(job) ? 'request' : 'job';
    scored.push([score, {kind, id: job.id, name: nameOf(job), note: `${kind}, ${job.state}, ${userOf(job)}`}]);
  }
  for (const node of nodes) {
    const name = node.name.toLowerCase();
    if (name.includes(wanted)) scored.push([name === wanted ? 1 : 6, {kind: 'node', id: 0, name: node.name, note: `node, ${node.state}`}]);
  }
  const hits = scored.sort((a, b) => a[0] - b[0]).map(([, hit]) => hit).slice(0, MOST);
  // One that has ended may be known to the controller all the same.
  const isNumber = /^[1-9]\d{0,15}$/.test(wanted) && hits[0]?.id !== Number(wanted);
  return isNumber ? [{kind: 'number' as const, id: Number(wanted), name: 'Job', note: 'ask the controller'}, ...hits].slice(0, MOST) : hits;
}
