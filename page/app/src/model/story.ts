// The sentences of a job's page: its headline, and what happened to it.
import {Job} from '../../generated/api';
import {bytes} from '../text/amounts';
import {clock, duration, durationAfter} from '../text/time';
import {nameOf, phaseOf} from './jobs';
import {Move} from './moves';

const IS: Record<string, string> = {
  pending: 'waits for nodes', starting: 'is being started', running: 'runs', suspending: 'is being frozen', suspended: 'is frozen',
  resuming: 'is being thawed', dumping: 'is being checkpointed', committing: 'is being checkpointed', saving: 'saves itself',
  parked: 'is parked', restoring: 'is being restored', killing: 'is being ended', done: 'is done', failed: 'has failed', cancelled: 'was cancelled',
};
export const headline = (job: Job): string => `${nameOf(job)} ${IS[job.state] ?? `is ${job.state}`}`;

const LEFT: Record<Move['way'], string> = {
  'suspend': 'Frozen in RAM', 'checkpoint': 'Checkpointed', 'checkpoint through RAM': 'Frozen, then checkpointed', 'own save': 'Saved itself', 'kill': 'Ended, to start again',
};
const LEAVES: Record<Move['way'], string> = {
  'suspend': 'Being frozen', 'checkpoint': 'Being checkpointed', 'checkpoint through RAM': 'Being frozen', 'own save': 'Saves itself', 'kill': 'Being ended',
};

// "Checkpointed, left its nodes at 14:18:13"
export function whatHappened(move: Move): string {
  if (move.over === 'stayed') return `Told to leave at ${clock(move.orderedUs)}, and stayed`;
  if (move.freeUs === undefined) return move.over === 'ended' ? 'Ended before it left' : `${LEAVES[move.way]} since ${clock(move.orderedUs)}`;
  return `${LEFT[move.way]}, nodes free at ${clock(move.freeUs)}`;
}

// How long that took, beside what was predicted; and where its work is.
export function howItWent(move: Move): string[] {
  const parts: string[] = [];
  if (move.freeUs !== undefined) {
    const took = (move.freeUs - move.orderedUs) / 1e6;
    parts.push(`Its nodes were free after ${duration(took)}${move.predictedUs > 0 ? `, predicted ${durationAfter(move.orderedUs, move.predictedUs)}` : ''}.`);
  }
  if (move.durableUs !== undefined) parts.push(`Its image${move.bytes > 0 ? ` (${bytes(move.bytes)})` : ''} was whole at ${clock(move.durableUs)}.`);
  return parts;
}

export const isGone = (job: Job): boolean => ['frozen', 'parked', 'leaving', 'returning'].includes(phaseOf(job.state));
