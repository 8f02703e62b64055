// The time line of a preemption: the request and those that made way for it, on two linear axes. One axis would hide either the seconds
// of the way out or the minutes of the way back.
import {Event, Job, Plan, PlanStep} from '../../generated/api';
import {Kind, Move, moveFor, movesOf} from './moves';
import {decidingPlan, victims} from './plans';

export type Bar = Kind | 'wait' | 'start' | 'od';
export interface Segment { kind: Bar; fromUs: number; toUs: number }
export interface Axis { fromUs: number; toUs: number }

export interface Row {
  job: number;
  isRequest: boolean;          // or else one that makes way for it
  step: PlanStep | undefined;  // undefined: its plan is not known
  move: Move | undefined;      // undefined: it has not been told yet, or nothing of it is known
  segments: Segment[];
  predictedFreeUs: number;     // 0: not known
}
export interface TimeLine { rows: Row[]; grantedUs: number; out: Axis; back: Axis | undefined }

// What happened to the request itself.
function ownSegments(job: Job, events: readonly Event[], nowUs: number): {segments: Segment[]; grantedUs: number} {
  const placed = events.find(event => event.job === job.id && event.kind === 'place')?.atUs ?? 0;
  const endUs = job.endedUs || nowUs, grantedUs = placed || job.firstStartedUs;
  const segments: Segment[] = [{kind: 'wait', fromUs: job.submittedUs, toUs: grantedUs || endUs}];
  if (grantedUs > 0 && grantedUs < (job.firstStartedUs || endUs)) segments.push({kind: 'start', fromUs: grantedUs, toUs: job.firstStartedUs || endUs});
  if (job.firstStartedUs > 0) segments.push({kind: 'od', fromUs: job.firstStartedUs, toUs: endUs});
  return {segments, grantedUs: placed};
}

function segmentsOf(move: Move | undefined, submittedUs: number, nowUs: number): Segment[] {
  if (move === undefined) return [];
  const spans = move.spans.map(span => ({kind: span.kind as Bar, fromUs: span.fromUs, toUs: span.toUs ?? nowUs}));
  const before = Math.min(submittedUs, move.orderedUs);
  const runs: Segment = {kind: 'run', fromUs: before - 0.08 * Math.max(1e6, (move.freeUs ?? nowUs) - before), toUs: move.orderedUs};
  return [runs, ...spans.filter(span => span.toUs > span.fromUs)];
}

const PAD = 0.06;
function axis(fromUs: number, toUs: number): Axis {
  const pad = Math.max(0.5e6, PAD * (toUs - fromUs));
  return {fromUs: fromUs - pad, toUs: toUs + pad};
}

// Who is in any of the plans, by the newest that has it: a request that is planned again meets some who have left already.
export function involved(plans: readonly Plan[]): PlanStep[] {
  return [...new Map(plans.filter(plan => plan.feasible).flatMap(victims).map(step => [step.job, step])).values()];
}

// Who was told to go for it.
export const movedFor = (events: readonly Event[], request: number): number[] =>
  [...new Set(events.filter(event => event.request === request && event.job !== request && event.kind.startsWith('order-')).map(event => event.job))];

// `events`: of the request and of those involved, oldest first. Who is in an earlier plan alone, and was never told to go, has no row.
export function timeLineOf(request: Job, plans: readonly Plan[], events: readonly Event[], nowUs: number): TimeLine {
  const own = ownSegments(request, events, nowUs), chosen = new Set(decidingPlan(plans)?.steps.map(step => step.job));
  const steps = new Map(involved(plans).map(step => [step.job, step]));
  const rows: Row[] = [...new Set([...steps.keys(), ...movedFor(events, request.id)])].map(job => {
    const move = moveFor(movesOf(events.filter(event => event.job === job)), request.id), step = steps.get(job);
    return {
      job, step, move, isRequest: false, segments: segmentsOf(move, request.submittedUs, nowUs),
      predictedFreeUs: move?.predictedUs || (step?.predictedReleaseUs ?? 0),
    };
  }).filter(row => row.move !== undefined || chosen.has(row.job));
  const first: Row = {job: request.id, step: undefined, move: undefined, isRequest: true, segments: own.segments, predictedFreeUs: 0};
  const moves = rows.flatMap(row => (row.move === undefined ? [] : [row.move]));
  // The way out is over when the request runs, or should, and every node is free.
  const outEnds = [request.spec?.startByUs ?? 0, request.firstStartedUs, own.grantedUs, ...rows.map(row => row.predictedFreeUs), ...moves.map(move => move.freeUs ?? 0), ...moves.map(move => move.durableUs ?? 0)];
  const sane = outEnds.filter(us => us > 0 && us < request.submittedUs + 3600e6);
  const out = axis(request.submittedUs, Math.max(request.submittedUs + 1e6, ...sane));
  const backEnds = moves.map(move => move.backUs ?? (move.over === '' ? nowUs : 0)).filter(us => us > out.toUs);
  const backTo = Math.max(0, ...backEnds);
  return {rows: [first, ...rows], grantedUs: own.grantedUs, out, back: backTo > 0 ? {fromUs: out.toUs, toUs: axis(out.toUs, backTo).toUs} : undefined};
}

export interface Tick { us: number; text: string }
const STEPS_S = [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

// From three to seven of them, counted from `zeroUs` on.
export function ticksOf({fromUs, toUs}: Axis, zeroUs: number): Tick[] {
  const spanS = (toUs - fromUs) / 1e6, step = STEPS_S.find(each => spanS / each <= 6) ?? Math.ceil(spanS / 5);
  const unit = step < 60 ? [1, 's'] as const : step < 3600 ? [60, 'min'] as const : [3600, 'h'] as const;
  const ticks: Tick[] = [];
  for (let s = Math.ceil((fromUs - zeroUs) / 1e6 / step) * step; zeroUs + s * 1e6 <= toUs; s += step) {
    if (s >= 0) ticks.push({us: zeroUs + s * 1e6, text: `${Number((s / unit[0]).toFixed(1))} ${unit[1]}`});
  }
  return ticks;
}

// In per cent.
export const placeOn = ({fromUs, toUs}: Axis, us: number): number => Math.max(0, Math.min(100, (100 * (us - fromUs)) / (toUs - fromUs)));
export const isOn = ({fromUs, toUs}: Axis, us: number): boolean => us > fromUs && us <= toUs;
