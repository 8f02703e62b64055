// Types of the API's JSON, and the tables by which src/api/decode.ts reads it, from the .proto files.
//
//   generateApi(folder of the .proto files, file to write)
//
// A field that is renamed there has another name here, and what uses it does not compile any more.
import {execFileSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {readDescriptorSet} from './descriptor.mjs';

const PACKAGE = 'siding.v1.';
// What the controller answers; the rest follows from these.
const ROOTS = ['ListJobsResponse', 'JobChanges', 'ExplainResponse', 'ListNodesResponse', 'SiteInfo', 'PolicyInForce', 'TrendsResponse', 'Event', 'Plan', 'ActionPlan', 'PageSession', 'PageOrdered', 'PageOrder'];

const NUMBERS = new Set(['double', 'float', 'int64', 'uint64', 'int32', 'uint32', 'fixed32', 'fixed64', 'sfixed32', 'sfixed64', 'sint32', 'sint64']);

const short = name => name.slice(PACKAGE.length).replaceAll('.', '');

function descriptors(protoFolder) {
  const folder = mkdtempSync(join(tmpdir(), 'siding-page-'));
  try {
    const file = join(folder, 'set');
    execFileSync(process.env.PROTOC ?? 'protoc', ['--include_imports', `--descriptor_set_out=${file}`, '-I', protoFolder, 'siding/v1/page.proto']);
    return readDescriptorSet(readFileSync(file));
  } finally {
    rmSync(folder, {recursive: true});
  }
}

// "number", "boolean", "string", or a name of ours.
function scalar(field) {
  if (NUMBERS.has(field.type)) return 'number';
  if (field.type === 'bool') return 'boolean';
  if (field.type === 'message' || field.type === 'enum') return short(field.typeName);
  return 'string';
}

// How decode.ts reads a value: [form, what]; form: one, list, map.
function shape(field, set) {
  const map = field.type === 'message' && set.messages.get(field.typeName).isMap ? set.messages.get(field.typeName) : null;
  if (map) return {form: 'map', value: map.fields[1]};
  return {form: field.repeated ? 'list' : field.type === 'message' || field.optional ? 'maybe' : 'one', value: field};
}

function typeText({form, value}) {
  const name = scalar(value);
  return {list: `${name}[]`, map: `Record<string, ${name}>`, maybe: name, one: name}[form];
}

function reachable(set) {
  const found = new Set();
  const visit = name => {
    if (found.has(name)) return;
    found.add(name);
    for (const field of set.messages.get(name).fields) {
      const {value} = shape(field, set);
      if (value.type === 'message') visit(value.typeName);
      if (value.type === 'enum') found.add(value.typeName);
    }
  };
  for (const root of ROOTS) visit(PACKAGE + root);
  return [...found].sort();
}

export function generateApi(protoFolder, output) {
  const set = descriptors(protoFolder);
  const out = ['// Generated from siding/v1/page.proto, and what that imports, by generate/api.mjs.', ''];
  const tables = [];
  for (const name of reachable(set)) {
    if (set.enums.has(name)) {
      const values = set.enums.get(name).map(value => `'${value}'`);
      out.push(`export type ${short(name)} = ${values.join(' | ')};`, '');
      tables.push(`  ${short(name)}: {values: [${values.join(', ')}]},`);
      continue;
    }
    const fields = set.messages.get(name).fields.map(field => ({field, shape: shape(field, set)}));
    out.push(`export interface ${short(name)} {`);
    for (const each of fields) out.push(`  ${each.field.jsonName}${each.shape.form === 'maybe' ? '?' : ''}: ${typeText(each.shape)};`);
    out.push('}', '');
    const rows = fields.map(each => `['${each.field.name}', '${each.field.jsonName}', '${each.shape.form}', '${scalar(each.shape.value)}']`);
    tables.push(`  ${short(name)}: {fields: [${rows.join(', ')}]},`);
  }
  out.push(
      'export type Form = \'one\' | \'maybe\' | \'list\' | \'map\';',
      'export interface Table { readonly values?: readonly string[]; readonly fields?: readonly (readonly [string, string, Form, string])[] }',
      'export const TABLES: Record<string, Table> = {', ...tables, '};', '',
      `export interface Answers { ${ROOTS.map(root => `${root}: ${root}`).join('; ')} }`, '');
  // A build and the tests may run side by side.
  mkdirSync(dirname(output), {recursive: true});
  const draft = `${output}.${process.pid}`;
  writeFileSync(draft, out.join('\n'));
  renameSync(draft, output);
}
