// Debian's chromium without a window (half of the processor time of one with), driven by playwright-core, and what each test asks of a page.
import {existsSync, mkdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {chromium} from 'playwright-core';

export const CHROMIUM = process.env.SIDING_CHROMIUM ?? '/usr/bin/chromium-headless-shell';
export const hasBrowser = existsSync(CHROMIUM);
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run', '--disable-dev-shm-usage'];
// In ASCII, in half the bytes on its way through the debugger's protocol.
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8').replace(/[^\x00-\x7f]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
export const PATIENCE_MS = 300_000;  // of all that waits: a busy machine's

export const launch = () => chromium.launch({executablePath: CHROMIUM, args: FLAGS});

// A page whose errors, and what its Content-Security-Policy has stopped, are gathered in `page.errors`.
export async function blank(browser, {width = 1280, height = 900, scheme = 'light'} = {}) {
  const page = await browser.newPage({viewport: {width, height}, colorScheme: scheme});
  page.setDefaultTimeout(PATIENCE_MS);
  page.errors = [];
  page.on('pageerror', error => page.errors.push(String(error)));
  page.on('console', message => { if (/Content Security Policy/.test(message.text())) page.errors.push(message.text()); });
  return page;
}

export async function open(browser, address, look) {
  const page = await blank(browser, look);
  await page.goto(address);
  return page;
}

// A page that many addresses are opened in, one after another: a new one takes more of the processor than most of them. Each document in it
// brings axe along, which is sent once.
export async function blankForMany(browser) {
  const page = await blank(browser);
  await page.addInitScript(`globalThis.bringAxe = () => {${AXE}\n};`);
  return page;
}

// The window becomes this one.
export async function resize(page, {width = 1280, height = 900, scheme = 'light'}) {
  await page.setViewportSize({width, height});
  await page.emulateMedia({colorScheme: scheme});
}

export const drawn = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done()))));

export const heading = (page, text) => page.locator('h1', {hasText: text}).waitFor();

// What went wrong, and whether the page scrolls sideways.
export async function problems(page) {
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  return [...(sideways > 0 ? [`scrolls sideways by ${sideways} px`] : []), ...page.errors];
}

// What axe finds, one line each.
export async function findings(page) {
  // By the debugger's protocol, which the page's Content-Security-Policy does not bind.
  const isThere = await page.evaluate(() => {
    if (globalThis.axe === undefined) globalThis.bringAxe?.();
    return globalThis.axe !== undefined;
  });
  if (!isThere) await page.evaluate(AXE);
  return page.evaluate(async () => {
    const {violations} = await globalThis.axe.run(document, {resultTypes: ['violations']});
    return violations.flatMap(each => each.nodes.map(node => `${each.id}: ${node.target.join(' ')}: ${node.failureSummary?.split('\n')[1]?.trim()}`));
  });
}

// For eyes, where SIDING_SCREENSHOTS names a folder.
export async function picture(page, name) {
  const folder = process.env.SIDING_SCREENSHOTS;
  if (folder === undefined) return;
  mkdirSync(folder, {recursive: true});
  await page.screenshot({path: join(folder, `${name}.png`), fullPage: true, animations: 'disabled'});
}
