// Builds the page: types from the .proto files, their check, one script and one style sheet, and the licences of what is in them.
//
//   node build.mjs [--out FOLDER] [--embed FILE]   the page, into FOLDER (default: dist); FILE: the same as a C++ source
//   node build.mjs --unit-tests                    builds and runs the unit tests
import {execFileSync} from 'node:child_process';
import {copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import * as esbuild from 'esbuild';
import {embed} from './generate/embed.mjs';
import {generateApi} from './generate/api.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const PROTO = resolve(HERE, '../../proto');
const GENERATED = join(HERE, 'generated/api.ts');

function check() {
  generateApi(PROTO, GENERATED);
  execFileSync(process.execPath, [join(HERE, 'node_modules/typescript/bin/tsc'), '--noEmit', '--project', HERE], {stdio: 'inherit'});
}

// The packages that have come into the bundle, by what esbuild read.
function packagesIn(metafile) {
  const names = Object.keys(metafile.inputs).map(path => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  return [...new Set(names.filter(name => name !== undefined))].sort();
}

function licenceOf(name) {
  const folder = join(HERE, 'node_modules', name);
  const {version, license} = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find(each => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
}

async function buildPage(out) {
  check();
  rmSync(out, {recursive: true, force: true});
  mkdirSync(out, {recursive: true});
  const {metafile} = await esbuild.build({
    absWorkingDir: HERE,
    entryPoints: {page: 'src/main.ts', style: 'src/style/all.css'},
    outdir: out,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2021',
    legalComments: 'none',  // licences.txt has them whole
    metafile: true,
  });
  for (const file of ['index.html', 'icon.svg']) copyFileSync(join(HERE, 'src', file), join(out, file));
  writeFileSync(join(out, 'licences.txt'), packagesIn(metafile).map(licenceOf).join(`\n${'-'.repeat(80)}\n\n`));
}

async function runUnitTests() {
  check();
  const out = mkdtempSync(join(HERE, 'generated/tests-'));
  try {
    const entryPoints = readdirSync(join(HERE, 'test/unit')).filter(name => name.endsWith('.test.ts')).map(name => join(HERE, 'test/unit', name));
    await esbuild.build({entryPoints, outdir: out, bundle: true, platform: 'node', format: 'esm', outExtension: {'.js': '.mjs'}, sourcemap: 'inline'});
    const built = readdirSync(out).filter(name => name.endsWith('.mjs')).map(name => join(out, name));
    execFileSync(process.execPath, ['--enable-source-maps', '--test', ...built], {stdio: 'inherit'});
  } finally {
    rmSync(out, {recursive: true});
  }
}

try {
  const {values} = parseArgs({options: {'out': {type: 'string', default: join(HERE, 'dist')}, 'embed': {type: 'string'}, 'unit-tests': {type: 'boolean'}}});
  if (values['unit-tests']) await runUnitTests();
  else await buildPage(resolve(values.out));
  if (values.embed !== undefined) embed(resolve(values.out), resolve(values.embed));
} catch (error) {
  if (error.status === undefined) console.error(error.message);  // else: what ran has said it
  process.exit(1);
}
