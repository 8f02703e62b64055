// What a node's tile shows.
import {Job, Node} from '../../generated/api';
import {isOnDemand, phaseOf} from './jobs';

export type Face = 'batch' | 'od' | 'leave' | 'frozen' | 'back' | 'free' | 'cordoned' | 'faulty' | 'silent' | 'down' | 'lost';

// In the order of the legend.
export const FACES: Record<Face, string> = {
  batch: 'batch job', od: 'on-demand', leave: 'being freed', back: 'restoring', frozen: 'holds a frozen job', free: 'free',
  cordoned: 'takes nothing new', faulty: 'faulty', silent: 'silent', down: 'agent away', lost: 'lost',
};

const BY_STATE: Record<string, Face> = {
  down: 'down', lost: 'lost', silent: 'silent', faulty: 'faulty', cordoned: 'cordoned', drained: 'cordoned',
};

export const jobsOn = (node: Node, jobs: ReadonlyMap<number, Job>): Job[] =>
  [...node.jobs, ...node.suspendedJobs].map(id => jobs.get(id)).filter((job): job is Job => job !== undefined);

// What is wrong with it comes first, then what happens there, then what runs.
export function faceOf(node: Node, jobs: ReadonlyMap<number, Job>): Face {
  const state = BY_STATE[node.state];
  if (state !== undefined && !(state === 'cordoned' && node.jobs.length > 0)) return state;
  const here = node.jobs.map(id => jobs.get(id)), phases = here.map(job => (job ? phaseOf(job.state) : 'runs'));
  if (phases.includes('leaving')) return 'leave';
  if (phases.includes('returning')) return 'back';
  if (here.some(job => job !== undefined && isOnDemand(job))) return 'od';
  if (here.length > 0) return 'batch';
  return node.suspendedJobs.length > 0 ? 'frozen' : 'free';
}

// n2 before n10.
export function inNaturalOrder(nodes: readonly Node[]): Node[] {
  const compare = new Intl.Collator('en', {numeric: true}).compare;
  return [...nodes].sort((a, b) => compare(a.name, b.name));
}

export function countByFace(faces: readonly Face[]): [Face, number][] {
  return (Object.keys(FACES) as Face[]).map((face): [Face, number] => [face, faces.filter(each => each === face).length]).filter(([, n]) => n > 0);
}

export type Density = 'cards' | 'names' | 'tiles';
export const densityOf = (nodes: number): Density => (nodes <= 16 ? 'cards' : nodes <= 200 ? 'names' : 'tiles');
