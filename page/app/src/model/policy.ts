// The policy in force, a line at a time, with what is known of each. Pure.
import {Event, Plan, PolicyInForce} from '../../generated/api';

export interface Line {
  number: number;
  text: string;
  key: string;       // of the policy, in which it stands; empty: none
  jobClass: string;  // of a class's line
  normally?: string; // what the key says without a file, if that is something else; empty: nothing
  changed?: Event;   // the newest event by which the line came
  leftAlone: number; // jobs that the requests ahead leave alone by it
  requests: number[];
}

const keyOf = (text: string): string => /^([a-z_]+):/.exec(text)?.[1] ?? '';
const classOf = (text: string): string => /^\s*- \{.*?\bname: ("?)([^,}"]+)\1/.exec(text)?.[2] ?? '';

// key -> all that it says.
function blocksOf(yaml: string): Map<string, string> {
  const blocks = new Map<string, string>();
  let key = '';
  for (const text of yaml.split('\n').filter(each => each !== '')) {
    key = keyOf(text) || key;
    blocks.set(key, blocks.has(key) ? `${blocks.get(key)}\n${text}` : text);
  }
  return blocks;
}

export const policyChanges = (events: readonly Event[]): Event[] => events.filter(event => event.kind === 'policy-changed');

// `events`: newest first. `plans`: the newest one of each request that is ahead.
export function linesOf(policy: PolicyInForce, events: readonly Event[], plans: Iterable<Plan>): Line[] {
  const own = blocksOf(policy.yaml), normal = blocksOf(policy.defaults), changes = policyChanges(events), kept = [...plans];
  let key = '';
  return policy.yaml.replace(/\n$/, '').split('\n').map((text, i) => {
    const begins = keyOf(text);
    key = begins || key;
    const jobClass = classOf(text), line: Line = {number: i + 1, text, key, jobClass, leftAlone: 0, requests: []};
    if (begins !== '' && policy.defaults !== '' && own.get(key) !== normal.get(key)) line.normally = normal.get(key)?.slice(key.length + 1).trim() ?? '';
    const changed = changes.find(event => event.changes.includes(`+${text}`));
    if (changed !== undefined) line.changed = changed;
    for (const plan of kept) {
      // A class's keys stand in its one line.
      const jobs = plan.keptGroups.filter(group => (group.jobClass !== '' ? group.jobClass === jobClass : begins !== '' && group.policyKey === begins)).reduce((sum, group) => sum + (group.policyKey === '' ? 0 : group.jobs), 0);
      if (jobs === 0) continue;
      line.leftAlone += jobs;
      line.requests.push(plan.request);
    }
    return line;
  });
}

// The line that an address names: "L18", a key, or a key of a class as "min_runtime/campaign". 0: none.
export function lineNamed(lines: readonly Line[], name: string): number {
  if (/^L\d+$/.test(name)) return Number(name.slice(1)) <= lines.length ? Number(name.slice(1)) : 0;
  const [key = '', jobClass = ''] = name.split('/');
  return (jobClass !== '' ? lines.find(line => line.jobClass === jobClass) : lines.find(line => line.key === key && key !== ''))?.number ?? 0;
}
