// What became of a request's deadline.
import {Job} from '../../generated/api';
import {duration} from '../text/time';
import {deadlineOf, hasEnded, whyText} from './jobs';

export interface Outcome {
  kind: 'met' | 'missed' | 'refused' | 'ahead' | 'none';
  text: string;
}

export function outcomeOf(job: Job): Outcome {
  const due = deadlineOf(job);
  if (due === 0) return {kind: 'none', text: whyText(job)};
  if (job.firstStartedUs > 0) {
    const margin = (due - job.firstStartedUs) / 1e6;
    return margin >= 0 ? {kind: 'met', text: `met, ${duration(margin)} early`} : {kind: 'missed', text: `missed by ${duration(-margin)}`};
  }
  if (!hasEnded(job)) return {kind: 'ahead', text: whyText(job) || 'ahead'};
  // Refused ones are kept as failed; others can be taken back before they start.
  return job.state === 'cancelled' ? {kind: 'none', text: 'taken back'} : {kind: 'refused', text: `refused${job.reason === '' ? '' : `: ${job.reason}`}`};
}
