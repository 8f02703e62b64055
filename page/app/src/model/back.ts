// When a job that waits or made way gets nodes, in words: what the controller has worked out, and why it could not.
import {BackBecause, Job} from '../../generated/api';
import {phaseOf} from './jobs';

export interface Forecast {
  predictedUs: number;  // 0: not known
  latestUs: number;     // 0: not known
  nodes: readonly string[];
  because: string;      // what the time rests on, or why there is none; empty: that is not said
  other: number;        // the job that `because` is about; 0: none
}

const who = ({job, node}: BackBecause): string => `job ${job}${node === '' ? '' : ` on ${node}`}`;

function becauseText(because: BackBecause, itself: number): string {
  const alone = because.image ? ', where alone it can go on,' : '';
  switch (because.kind) {
    case 'FREE': return 'nodes are free for it';
    case 'WALLTIME': return `when ${who(because)} has ended by its walltime`;
    case 'EXPECTED': return `when ${who(because)} ends as the policy expects`;
    case 'LEAVING': return because.job === 0 || because.job === itself ? 'when it has left its own nodes' : `when ${who(because)} has left`;
    case 'RETRY': return 'it failed, and is tried again then';
    case 'NO_END': return `${who(because)}${alone} has no known end`;
    case 'NODE_AWAY': return `node ${because.node}${alone} is away, cordoned or faulty`;
    case 'TOO_FEW': return 'there are fewer nodes than it needs';
    case 'BEHIND': return because.job === 0 ? 'others are ahead of it, of whom no time is known' : `no time is known of job ${because.job} before it`;
    case 'TOO_MUCH': return 'too much comes before it to be worked out';
    case 'HELD': return 'until somebody releases or resumes it';
    case 'DECISION': return 'until somebody says how it is to go on';
    case 'TASKS_LEFT': return 'until tasks of its last start are seen to be gone';
    case 'MANAGER': return 'its cluster manager decides';
    default: return '';
  }
}

// Undefined: nothing has been worked out for it.
export function forecastOf(job: Job): Forecast | undefined {
  const {back} = job;
  if (back === undefined || phaseOf(job.state) === 'ended') return undefined;
  const {predictedUs, latestUs, nodes, because} = back;
  return {predictedUs, latestUs, nodes, because: because === undefined ? '' : becauseText(because, job.id), other: because?.job ?? 0};
}
