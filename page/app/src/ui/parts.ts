// The parts that several views are made of.
import {VNode} from 'preact';
import {Job} from '../../generated/api';
import {now} from '../live/live';
import {isOnDemand, nameOf, phaseOf} from '../model/jobs';
import {clock, distance, moment, since} from '../text/time';
import {Child, html} from './html';
import {jobAddress, requestAddress} from './route';

// Refreshed each second while the controller is heard, and dotted while it is not.
export const FromNow = ({at}: {at: number}) => html`<span class="num ticks">${distance(at, now.value)}</span>`;
export const Lasting = ({from}: {from: number}) => html`<span class="num ticks">${since(from, now.value)}</span>`;
export const At = ({us, tenths}: {us: number; tenths?: boolean}) =>
  html`<time class="num" datetime=${new Date(us / 1000).toISOString()} title=${`${new Date(us / 1000).toISOString()}`}>${tenths ? clock(us, true) : moment(us, now.value)}</time>`;

const SWATCHES: Record<string, string> = {waits: 'free', runs: 'batch', leaving: 'leave', frozen: 'frozen', parked: 'parked', returning: 'back', ended: 'free'};
export function swatchOf(job: Pick<Job, 'state' | 'spec'>): string {
  if (job.state === 'failed') return 'down';
  const phase = phaseOf(job.state);
  return phase === 'runs' && isOnDemand(job as Job) ? 'od' : SWATCHES[phase] ?? 'free';
}
export const Swatch = ({kind}: {kind: string}) => html`<i class=${`sw t-${kind}`} aria-hidden="true"></i>`;
export const JobState = ({job}: {job: Job}) => html`<span class="chip"><${Swatch} kind=${swatchOf(job)}/>${job.state}</span>`;

export const JobLink = ({id, name}: {id: number; name: string}) =>
  html`<a class="job" href=${jobAddress(id)}><b>${name || 'job'}</b> <span class="id">${id}</span></a>`;
export const LinkOf = ({job}: {job: Job}) =>
  html`<a class="job" href=${isOnDemand(job) ? requestAddress(job.id) : jobAddress(job.id)}><b>${nameOf(job)}</b> <span class="id">${job.id}</span>
    </a>`;
export const RequestLink = ({id, name}: {id: number; name?: string}) => html`<a href=${requestAddress(id)}>request ${id}${name ? ` ${name}` : ''}</a>`;

let panels = 0;
interface PanelProps { title: string; right?: Child; kind?: string; children?: Child }
export function Panel({title, right, kind, children}: PanelProps) {
  const id = `panel-${title.replace(/\W+/g, '-')}-${++panels}`;
  return html`<section class=${`panel ${kind ?? ''}`} aria-labelledby=${id}>
    <div class="phead"><h2 id=${id}>${title}</h2>${right && html`<div class="pright">${right}</div>`}</div>${children}</section>`;
}

// A column: its heading, and "r" for numbers.
export type Column = string | VNode | readonly [string, 'r'];
interface TableProps { caption: string; columns: readonly Column[]; kind?: string; children?: Child }
export function Table({caption, columns, kind, children}: TableProps) {
  const head = (column: Column) => (Array.isArray(column) ? html`<th scope="col" class="r">${column[0]}</th>` : html`<th scope="col">${column}</th>`);
  return html`<div class="scroll" role="group" tabindex="0" aria-label=${`${caption}, table`}><table class=${kind ?? 'stack'}>
    <caption class="vh">${caption}</caption><thead><tr>${columns.map(head)}</tr></thead><tbody>${children}</tbody></table></div>`;
}

interface SegmentedProps { label: string; options: readonly (readonly [string, string])[]; value: string; change: (value: string) => void }
export const Segmented = ({label, options, value, change}: SegmentedProps) => html`<div class="seg" role="group" aria-label=${label}>
  ${options.map(([key, text]) => html`<button key=${key} type="button" aria-pressed=${String(key === value)} onClick=${() => change(key)}>${text}</button>`)}</div>`;

interface BoxProps { title: string; big: Child; children?: Child }
export const Box = ({title, big, children}: BoxProps) => html`<div><h2>${title}</h2><p class="big">${big}</p><p>${children}</p></div>`;

export const Facts = ({of}: {of: readonly (readonly [string, Child])[]}) => html`<dl class="kv">
  ${of.filter(([, value]) => value !== '' && value !== undefined && value !== null).map(([name, value]) => html`<dt>${name}</dt>
    <dd>${value}</dd>`)}</dl>`;

export const Command = ({children}: {children: Child}) => html`<pre class="cmd" tabindex="0">${children}</pre>`;
