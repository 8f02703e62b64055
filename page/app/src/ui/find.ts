// Find: a job by number, name or user, a node by name.
import {useState} from 'preact/hooks';
import {state} from '../live/live';
import {Hit, find} from '../model/find';
import {closeDialog, openDialog} from './dialog';
import {html} from './html';
import {go, jobAddress, nodeAddress, requestAddress} from './route';

function addressOf(hit: Hit): string {
  if (hit.kind === 'node') return nodeAddress(hit.name);
  return hit.kind === 'request' ? requestAddress(hit.id) : jobAddress(hit.id);
}

function Find() {
  const [text, setText] = useState(''), [current, setCurrent] = useState(0);
  const {jobs, ended, nodes} = state.value;
  const hits = find(text, [...jobs.values(), ...(ended?.values() ?? [])], nodes);
  const chosen = Math.min(current, hits.length - 1);
  const open = (hit: Hit | undefined): void => {
    if (hit === undefined) return;
    closeDialog();
    go(addressOf(hit));
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setCurrent(Math.max(0, Math.min(hits.length - 1, chosen + step)));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      open(hits[chosen]);
    }
  };
  return html`<div class="in">
    <input class="find" type="search" autofocus role="combobox" aria-expanded="true" aria-controls="hits" aria-label="Find a job, user or node"
      aria-activedescendant=${hits.length > 0 ? `hit-${chosen}` : undefined} placeholder="Job number, name or user; node" autocomplete="off"
      onInput=${(event: InputEvent) => { setText((event.target as HTMLInputElement).value); setCurrent(0); }} onKeyDown=${onKey}/></div>
    <div class="results" id="hits" role="listbox" aria-label="Found">${hits.map((hit, i) => html`<div key=${`${hit.kind} ${hit.id} ${hit.name}`} id=${`hit-${i}`} role="option" class=${i === chosen ? 'hit cur' : 'hit'}
      aria-selected=${String(i === chosen)} onClick=${() => open(hit)}><b>${hit.name}</b><span class="dim">${hit.id || ''}</span>
        <span>${hit.note}</span></div>`)}</div>
    ${text !== '' && hits.length === 0 && html`<p class="empty">Nothing here has that name or number.</p>`}`;
}

export const openFind = (): void => openDialog('Find', html`<${Find}/>`);
