// The filter of the list of jobs: words that are in a job's name, number or user, and `user:`, `state:`, `node:` and `is:`.
import {Job} from '../../generated/api';
import {STATES, hasEnded, isAway, isOnDemand, nameOf, userOf} from './jobs';

export interface Filter {
  test: (job: Job) => boolean;
  wantsEnded: boolean;  // jobs that have ended are asked for
  problem: string;      // what cannot be read; empty: nothing
}

type Test = Filter['test'];
const IS: Record<string, Test> = {
  'away': isAway,
  'on-demand': isOnDemand,
  'batch': job => !isOnDemand(job),
  'ended': hasEnded,
  'preempted': job => job.preemptions > 0,
};

const choice = (values: readonly string[]): string => `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;

function keyed(key: string, value: string): Test | string {
  if (value === '') return `${key}: is followed by what is looked for`;
  const values = value.split(',');
  switch (key) {
    case 'user': return job => values.includes(userOf(job));
    case 'node': return job => job.nodes.some(node => values.includes(node));
    case 'state': {
      const unknown = values.find(each => !STATES.includes(each));
      return unknown === undefined ? job => values.includes(job.state) : `"${unknown}" is no state: ${choice(STATES)}`;
    }
    case 'is': {
      const test = IS[value];
      return test ?? `"${value}": is: is followed by ${choice(Object.keys(IS))}`;
    }
    default: return `"${key}:" is not known: user:, state:, node: or is:`;
  }
}

// All of the words have to fit. What cannot be read is said, and left out.
export function parseFilter(text: string): Filter {
  const tests: Test[] = [], problems: string[] = [];
  let wantsEnded = false;
  for (const word of text.trim().split(/\s+/).filter(each => each !== '')) {
    const [, key, value] = /^([a-z]+):(.*)$/.exec(word) ?? [];
    if (key === undefined || value === undefined) {
      const part = word.toLowerCase();
      tests.push(job => nameOf(job).toLowerCase().includes(part) || String(job.id).startsWith(part) || userOf(job).toLowerCase().includes(part));
      continue;
    }
    const test = keyed(key, value);
    if (typeof test === 'string') problems.push(test);
    else tests.push(test);
    wantsEnded ||= /^(state:.*(done|failed|cancelled)|is:ended)/.test(word);
  }
  return {test: job => tests.every(test => test(job)), wantsEnded, problem: problems.join('; ')};
}

// The text with `state:STATE` in place of what it says of states; the same state again takes it out.
export function toggleState(text: string, state: string): string {
  const words = text.trim().split(/\s+/).filter(word => word !== ''), wanted = `state:${state}`;
  const others = words.filter(word => !word.startsWith('state:'));
  return (words.includes(wanted) ? others : [...others, wanted]).join(' ');
}
