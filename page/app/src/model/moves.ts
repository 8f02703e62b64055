// What a job did for a request, from its events: when it was told to leave, when its nodes were free, when its work was safe, when it
// was back. Nothing is guessed: what no event says is not there.
import {Event} from '../../generated/api';

export type Kind = 'run' | 'leave' | 'commit' | 'frozen' | 'parked' | 'restore';
export interface Span {
  kind: Kind;
  fromUs: number;
  toUs: number | undefined;  // undefined: it is so now
}
export type Way = 'suspend' | 'checkpoint' | 'checkpoint through RAM' | 'own save' | 'kill';

export interface Move {
  job: number;
  request: number;
  way: Way;
  orderedUs: number;
  predictedUs: number;            // when its nodes should be free; 0: not known
  freeUs: number | undefined;     // its nodes were
  durableUs: number | undefined;  // its image was
  checkpoint: string;
  bytes: number;
  backUs: number | undefined;     // it ran again
  backBegunUs: number | undefined;
  over: '' | 'back' | 'stayed' | 'ended';  // '': it is still away
  spans: Span[];
}

const WAYS: Record<string, Way> = {'order-suspend': 'suspend', 'order-dump': 'checkpoint', 'order-save': 'own save', 'order-kill': 'kill'};
const STAYED = new Set(['freeze-failed', 'dump-failed', 'save-failed', 'continued', 'start-goes-on', 'restore-goes-on']);
const ENDED = new Set(['succeeded', 'failed', 'cancelled']);
const BACK = new Set(['started', 'restored', 'thawed']);
// What the job is in behind an event; an order by which it goes on leaving is in none.
const BEGINS: Record<string, Kind> = {
  'frozen': 'frozen', 'commit': 'commit', 'released': 'parked', 'requeued': 'parked', 'place': 'restore', 'order-resume': 'restore',
  'restore-failed': 'parked', 'start-failed': 'parked', 'restart-needed': 'parked',
};

function begin(event: Event, way: Way): Move {
  return {
    job: event.job, request: event.request, way, orderedUs: event.atUs, predictedUs: event.predictedUs, freeUs: undefined, durableUs: undefined,
    checkpoint: event.checkpoint, bytes: 0, backUs: undefined, backBegunUs: undefined, over: '', spans: [{kind: 'leave', fromUs: event.atUs, toUs: undefined}],
  };
}

function close(move: Move, atUs: number): void {
  const last = move.spans.at(-1);
  if (last !== undefined) last.toUs ??= atUs;
}

function enter(move: Move, kind: Kind, atUs: number): void {
  const last = move.spans.at(-1);
  if (last?.kind === kind && last.toUs === undefined) return;
  close(move, atUs);
  move.spans.push({kind, fromUs: atUs, toUs: undefined});
}

function end(move: Move, over: Move['over'], atUs: number): void {
  close(move, atUs);
  move.over = over;
}

function follow(move: Move, event: Event): void {
  const {kind, atUs} = event;
  if (STAYED.has(kind)) return end(move, 'stayed', atUs);
  if (ENDED.has(kind)) return end(move, 'ended', atUs);
  if (BACK.has(kind)) {
    end(move, 'back', atUs);
    move.backUs = atUs;
    move.spans.push({kind: 'run', fromUs: atUs, toUs: undefined});
    return;
  }
  if (kind === 'order-dump' && move.way === 'suspend') {
    move.way = 'checkpoint through RAM';
    move.checkpoint = event.checkpoint;
    return;
  }
  if (kind === 'commit') {
    move.durableUs = atUs;
    move.bytes = event.bytes;
    if (move.freeUs !== undefined) return;  // it stays frozen, or is as good as parked
  }
  if (kind === 'frozen' || kind === 'released' || kind === 'requeued') move.freeUs ??= atUs;
  if (kind === 'place' || kind === 'order-resume') move.backBegunUs = atUs;
  const next = BEGINS[kind];
  if (next !== undefined) enter(move, next, atUs);
}

// Of one job, oldest first; its events oldest first.
export function movesOf(events: readonly Event[]): Move[] {
  const moves: Move[] = [];
  for (const event of events) {
    const way = WAYS[event.kind], last = moves.at(-1), away = last !== undefined && last.over === '';
    if (away) follow(last, event);
    else if (way !== undefined && event.request !== 0) moves.push(begin(event, way));
  }
  return moves;
}

// The newest that it made for that request; 0: for any.
export const moveFor = (moves: readonly Move[], request: number): Move | undefined =>
  [...moves].reverse().find(move => request === 0 || move.request === request);
