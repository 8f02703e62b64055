// Keys: `/` find, `g` and a letter for a view, `?` this list. They can be switched off, for those to whom a single key happens.
import {signal} from '@preact/signals';
import {isDialogOpen, openDialog} from './dialog';
import {openFind} from './find';
import {html} from './html';
import {go} from './route';
import {TABS} from './tabs';

const STORED = 'siding.keys', LEAD_MS = 1200;

function stored(): boolean {
  try {
    return localStorage.getItem(STORED) !== 'off';
  } catch {
    return true;  // a browser that stores nothing
  }
}
export const keysOn = signal(stored());

function setKeys(on: boolean): void {
  keysOn.value = on;
  try {
    localStorage.setItem(STORED, on ? 'on' : 'off');
  } catch {
    // It is so for this page, then.
  }
}

const KEYS: readonly (readonly [string, string])[] = [
  ['/', 'find a job, user or node'], ...TABS.map(tab => [`g ${tab.key}`, tab.text] as const), ['\u2190 \u2191 \u2192 \u2193', 'between node tiles'],
  ['Enter', 'open, or keep a node in view'], ['Esc', 'close'], ['?', 'this list'],
];
const Help = () => html`<div class="in"><dl class="kv">${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
  <label class="check"><input type="checkbox" checked=${keysOn.value} onChange=${(event: Event) => setKeys((event.target as HTMLInputElement).checked)}/>
    Single keys work (/, g, ?)</label></div>`;
export const openHelp = (): void => openDialog('Keys', html`<${Help}/>`);

export function listenToKeys(): void {
  let ledAt = -Infinity;
  addEventListener('keydown', event => {
    const typing = event.target instanceof Element && event.target.matches('input, select, textarea');
    if (!keysOn.value || typing || event.ctrlKey || event.metaKey || event.altKey || isDialogOpen()) return;
    const tab = event.timeStamp - ledAt < LEAD_MS ? TABS.find(each => each.key === event.key) : undefined;
    ledAt = event.key === 'g' ? event.timeStamp : -Infinity;
    if (tab !== undefined) {
      go(`#/${tab.view}`);
    } else if (event.key === '/') {
      event.preventDefault();
      openFind();
    } else if (event.key === '?') {
      openHelp();
    }
  });
}
