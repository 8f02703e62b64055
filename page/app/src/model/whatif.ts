// The form of What if: a request that is not submitted. Pure.
import {Plan} from '../../generated/api';

// As it is typed.
export interface Form {
  nodes: string;
  slots: string;
  gpus: string;
  memory: string;
  by: string;
  notBefore: string;
  walltime: string;
  labels: string;
}
export type Field = keyof Form;
export const EMPTY: Form = {nodes: '1', slots: '1', gpus: '', memory: '', by: '+10m', notBefore: '', walltime: '', labels: ''};
const FIELDS = Object.keys(EMPTY) as Field[];

// Behind the ? of the address: what is not as in an empty form, each as field=text.
export const formText = (form: Form): string =>
  FIELDS.filter(field => form[field] !== EMPTY[field]).map(field => `${field}=${form[field].replace(/[%&]/g, encodeURIComponent)}`).join('&');

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
export function readForm(text: string): Form {
  const form = {...EMPTY};
  for (const part of text.split('&')) {
    const at = part.indexOf('='), field = FIELDS.find(each => each === part.slice(0, at));
    if (field !== undefined) form[field] = unescaped(part.slice(at + 1));
  }
  return form;
}

const UNITS: Record<string, number> = {us: 1, ms: 1e3, s: 1e6, m: 60e6, min: 60e6, h: 3600e6, d: 86400e6};

// "90s", "1m30s", "2h": in microseconds; undefined: it is no duration.
export function durationUs(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(us|ms|s|min|m|h|d)/g)];
  if (text === '' || parts.map(part => part[0]).join('') !== text) return undefined;
  return Math.round(parts.reduce((sum, [, number, unit]) => sum + Number(number) * (UNITS[unit ?? ''] ?? 0), 0));
}

const SIZES = ['', 'K', 'M', 'G', 'T'];
// "512MiB", "2GB", "4096": in bytes.
export function sizeOf(text: string): number | undefined {
  const [, number, unit = '', kind] = /^(\d+(?:\.\d+)?) ?([KMGT]?)(iB|B|)$/.exec(text) ?? [];
  if (number === undefined || (unit === '' && kind === 'iB') || (unit !== '' && kind === '')) return undefined;
  return Math.round(Number(number) * (kind === 'iB' ? 1024 : 1000) ** SIZES.indexOf(unit));
}

const DAY_US = 86400e6;
// "+30s", "14:30" (UTC, the next one) or RFC 3339: in microseconds since 1970.
export function momentUs(text: string, nowUs: number): number | undefined {
  if (text.startsWith('+')) {
    const after = durationUs(text.slice(1));
    return after === undefined ? undefined : nowUs + after;
  }
  const [, hours, minutes, seconds = '0'] = /^(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? [];
  if (hours !== undefined) {
    if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined;
    const today = Math.floor(nowUs / DAY_US) * DAY_US + (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1e6;
    return today > nowUs ? today : today + DAY_US;
  }
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) * 1000 : NaN;
  return Number.isNaN(at) ? undefined : at;
}

export interface Request {
  nodes: number;
  slots: number;
  gpus: number;
  memory: number;
  startByUs: number | 'earliest';
  notBeforeUs: number;
  walltimeUs: number;
  labels: readonly string[];
}
export type Problems = Partial<Record<Field, string>>;

const TIME = '+30s, 14:30 (UTC) or 2026-05-01T12:00:00Z';
const MOST = 2 ** 31 - 1;

// What is asked at that moment; undefined: something cannot be read, and `problems` says what.
export function requestOf(form: Form, nowUs: number): {request: Request | undefined; problems: Problems} {
  const problems: Problems = {};
  const read = <T>(field: Field, empty: T, parse: (text: string) => T | undefined, expected: string): T => {
    const text = form[field].trim(), value = text === '' ? empty : parse(text);
    if (value === undefined) problems[field] = `expected ${expected}`;
    return value ?? empty;
  };
  const whole = (from: number) => (text: string): number | undefined => (/^\d{1,10}$/.test(text) && Number(text) >= from && Number(text) <= MOST ? Number(text) : undefined);
  const labels = form.labels.trim().split(/\s+/).filter(word => word !== '');
  if (!labels.every(word => word.indexOf('=') > 0)) problems.labels = 'expected NAME=VALUE, such as account=beamline';
  const request: Request = {
    nodes: read('nodes', 1, whole(1), 'a number from 1'), slots: read('slots', 1, whole(1), 'a number from 1'), gpus: read('gpus', 0, whole(0), 'a number'),
    memory: read('memory', 0, sizeOf, 'a size, such as 512MiB or 2GB'),
    startByUs: read<number | 'earliest'>('by', 'earliest', text => (text === 'earliest' ? text : momentUs(text, nowUs)), `${TIME}, or earliest`),
    notBeforeUs: read('notBefore', 0, text => momentUs(text, nowUs), TIME), walltimeUs: read('walltime', 0, durationUs, 'a duration, such as 20m or 2h'), labels,
  };
  return {request: Object.keys(problems).length === 0 ? request : undefined, problems};
}

// As the address of the question has it.
export function questionOf(request: Request): string {
  const parts: [string, string | number][] = [['nodes', request.nodes], ['slots', request.slots], ['gpus', request.gpus], ['memory', request.memory], ['start_by_us', request.startByUs],
    ['not_before_us', request.notBeforeUs], ['walltime_us', request.walltimeUs], ...request.labels.map(label => ['label', label] as [string, string])];
  return parts.filter(([, value]) => value !== 0).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll('\'', '\'\\\'\'')}'`);
const utc = (us: number): string => new Date(us / 1000).toISOString().replace('.000Z', 'Z');
// sidingctl takes "14:30" in its user's own time: what is not from now on is written out.
const timeFor = (text: string, nowUs: number): string => {
  const at = text.startsWith('+') || text === 'earliest' ? undefined : momentUs(text, nowUs);
  return at === undefined ? text : utc(at);
};

// What submits it.
export function commandOf(form: Form, nowUs: number): string {
  const words = ['sidingctl', 'submit'];
  const add = (option: string, text: string): void => { if (text !== '') words.push(option, quoted(text)); };
  add('--nodes', form.nodes.trim() || '1');
  add('--slots', form.slots.trim() || '1');
  add('--gpus', form.gpus.trim());
  add('--memory', form.memory.trim());
  add('--start-by', timeFor(form.by.trim() || 'earliest', nowUs));
  add('--not-before', timeFor(form.notBefore.trim(), nowUs));
  add('--walltime', form.walltime.trim());
  for (const label of form.labels.trim().split(/\s+/)) add('--label', label);
  return [...words, '--', 'COMMAND'].join(' ');
}

// ---- Later costs less ----

const LADDER_S = [10, 20, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400];
const LATER = 5;

// "+30s", "+2m", "+4h"
export function afterText(seconds: number): string {
  const [unit, of] = seconds % 86400 === 0 ? ['d', 86400] : seconds % 3600 === 0 ? ['h', 3600] : seconds % 60 === 0 ? ['m', 60] : ['s', 1] as [string, number];
  return `+${seconds / (of as number)}${unit}`;
}

// The deadlines that are asked about besides: the earliest, and some that are later. Where nothing is lost there is nothing to save.
export function otherDeadlines(form: Form, plan: Plan, askedUs: number): string[] {
  if (plan.feasible && plan.lossNodeSeconds <= 0) return form.by.trim() === 'earliest' ? [] : ['earliest'];
  const ownS = (Math.max(plan.startByUs, plan.feasible ? 0 : plan.earliestUs) - askedUs) / 1e6;
  return [...(form.by.trim() === 'earliest' ? [] : ['earliest']), ...LADDER_S.filter(seconds => seconds > ownS * 1.05).slice(0, LATER).map(afterText)];
}
