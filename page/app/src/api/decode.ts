// Reads the API's JSON by the generated tables: 64-bit numbers, which come as strings, become numbers, and what protobuf leaves out
// gets its default. An answer of another shape is an error that names the field.
import {Answers, TABLES} from '../../generated/api';

export class BadAnswer extends Error {}

const DEFAULTS: Record<string, unknown> = {number: 0, string: '', boolean: false};

function scalar(type: string, raw: unknown, path: string): unknown {
  if (type === 'number') {
    // Of those that the API has, none is larger than what a double holds exactly.
    const value = typeof raw === 'string' && raw !== '' ? Number(raw) : raw;
    if (typeof value === 'number' && (!Number.isNaN(value) || raw === 'NaN')) return value;
  } else if (typeof raw === type) {
    return raw;
  }
  throw new BadAnswer(`${path}: a ${type} was expected, not ${JSON.stringify(raw)}`);
}

function value(type: string, raw: unknown, path: string): unknown {
  const table = TABLES[type];
  if (table === undefined) return scalar(type, raw, path);
  if (table.values === undefined) return message(type, raw, path);
  // A value that this page does not know yet is shown as it is.
  return typeof raw === 'number' ? table.values[raw] ?? String(raw) : scalar('string', raw, path);
}

function missing(type: string): unknown {
  return TABLES[type]?.values?.[0] ?? DEFAULTS[type];
}

function message(type: string, raw: unknown, path: string): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) throw new BadAnswer(`${path}: an object was expected`);
  const from = raw as Record<string, unknown>, to: Record<string, unknown> = {};
  for (const [protoName, name, form, of] of TABLES[type]?.fields ?? []) {
    const field = from[protoName], at = `${path}.${name}`;
    if (form === 'list') {
      if (field !== undefined && !Array.isArray(field)) throw new BadAnswer(`${at}: a list was expected`);
      to[name] = (field ?? []).map((each: unknown, i: number) => value(of, each, `${at}[${i}]`));
    } else if (form === 'map') {
      to[name] = Object.fromEntries(Object.entries(field ?? {}).map(([key, each]) => [key, value(of, each, `${at}.${key}`)]));
    } else if (field !== undefined) {
      to[name] = value(of, field, at);
    } else if (form === 'one') {
      to[name] = missing(of);
    }
  }
  return to;
}

export function decode<K extends keyof Answers>(type: K, raw: unknown): Answers[K] {
  return message(type, raw, type) as Answers[K];
}
