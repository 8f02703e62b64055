// Nodes as tiles: cards to 16, names to 200, small tiles above that. One stop of the tab key; arrows move between them.
import {useRef, useState} from 'preact/hooks';
import {Job, Node} from '../../generated/api';
import {state} from '../live/live';
import {Density, FACES, Face, countByFace, densityOf, faceOf, inNaturalOrder, jobsOn} from '../model/nodes';
import {nameOf} from '../model/jobs';
import {bytes, count} from '../text/amounts';
import {html} from '../ui/html';
import {JobState, Panel, Segmented, Swatch} from '../ui/parts';
import {NodeInspector} from './now_inspector';
import {lit} from './light';

type Metric = 'state' | 'gpus' | 'slots';
const METRICS: readonly (readonly [Metric, string])[] = [['state', 'State'], ['slots', 'Slots in use'], ['gpus', 'GPUs in use']];

interface TileOf { node: Node; face: Face; jobs: Job[] }

function shareOf({used, capacity}: Node, metric: Metric): number {
  const [part, whole] = metric === 'gpus' ? [used?.gpus, capacity?.gpus] : [used?.slots, capacity?.slots];
  return whole ? Math.round((100 * (part ?? 0)) / whole) : 0;
}
function FaceMark({of, metric}: {of: TileOf; metric: Metric}) {
  if (metric === 'state') return html`<i class=${`t-${of.face}`} aria-hidden="true"></i>`;
  return html`<i class="level" aria-hidden="true"><u style=${{height: `${shareOf(of.node, metric)}%`}}></u></i>`;
}

const described = ({node, face, jobs}: TileOf): string =>
  `${node.name}: ${FACES[face]}${jobs.length > 0 ? `, ${jobs.map(job => `${nameOf(job)} ${job.id} ${job.state}`).join(', ')}` : ''}`;

function TileBody({of, metric, density}: {of: TileOf; metric: Metric; density: Density}) {
  const {node, face, jobs} = of, first = jobs[0];
  if (density === 'cards') {
    return html`<span class="line"><b class="mono">${node.name}</b> <span class="chip dim">
      <${FaceMark} of=${of} metric=${metric}/>${FACES[face]}</span></span>
      ${jobs.map(job => html`<span class="line" key=${job.id}><${JobState} job=${job}/> ${nameOf(job)}</span>`)}
      <span class="line dim">${node.used?.slots ?? 0} of ${node.capacity?.slots ?? 0} slots · ${bytes(node.ramAvailable)} free</span>`;
  }
  if (density === 'names') {
    return html`<${FaceMark} of=${of} metric=${metric}/><span>${node.name}<br/>
      <span class="dim">${first ? nameOf(first) : FACES[face]}</span>${first && html`<span class="vh">, ${FACES[face]}</span>`}</span>`;
  }
  return html`<${FaceMark} of=${of} metric=${metric}/>`;
}

interface LegendProps { counts: [Face, number][]; face: Face | ''; choose: (face: Face | '') => void }
const Legend = ({counts, face, choose}: LegendProps) => html`<div class="legend" role="group" aria-label="Highlight nodes by state">
  ${counts.map(([each, n]) => html`<button key=${each} type="button" aria-pressed=${String(face === each)} onClick=${() => choose(face === each ? '' : each)}>
    <${Swatch} kind=${each}/>${FACES[each]} <b>${count(n)}</b></button>`)}</div>`;

// Where an arrow leads, by what is in sight: rows may be of any length.
function neighbour(tiles: HTMLElement[], from: number, key: string): HTMLElement | undefined {
  const here = tiles[from]?.getBoundingClientRect();
  if (here === undefined) return undefined;
  if (key === 'Home' || key === 'End') return tiles.at(key === 'Home' ? 0 : -1);
  if (key === 'ArrowRight' || key === 'ArrowLeft') return tiles[from + (key === 'ArrowRight' ? 1 : -1)];
  const down = key === 'ArrowDown';
  const others = (down ? tiles.slice(from + 1) : tiles.slice(0, from).reverse());
  return key.startsWith('Arrow') ? others.find(tile => {
    const box = tile.getBoundingClientRect();
    return (down ? box.top > here.top : box.top < here.top) && Math.abs(box.left - here.left) < here.width / 2;
  }) : undefined;
}

export function NodesPanel({picked}: {picked: string}) {
  const [metric, setMetric] = useState<Metric>('state'), [face, setFace] = useState<Face | ''>('');
  const [kept, setKept] = useState(picked), [pointed, setPointed] = useState(''), [stop, setStop] = useState(picked), area = useRef<HTMLDivElement>(null);
  const {nodes, jobs} = state.value, density = densityOf(nodes.length);
  const tiles = inNaturalOrder(nodes).map(node => ({node, face: faceOf(node, jobs), jobs: jobsOn(node, jobs)}));
  const hit = (tile: TileOf): boolean => (lit.value !== 0 ? tile.jobs.some(job => job.id === lit.value) : tile.face === face);
  const dims = (lit.value !== 0 && tiles.some(hit)) || (lit.value === 0 && face !== '');
  const onKey = (event: KeyboardEvent): void => {
    const all = [...(area.current?.querySelectorAll<HTMLElement>('.tile') ?? [])], to = neighbour(all, all.indexOf(document.activeElement as HTMLElement), event.key);
    if (to === undefined) return;
    event.preventDefault();
    to.focus();
  };
  const stopAt = tiles.some(tile => tile.node.name === stop) ? stop : tiles[0]?.node.name;
  const shown = tiles.find(tile => tile.node.name === (kept || pointed));
  const hasGpus = nodes.some(node => (node.capacity?.gpus ?? 0) > 0);
  const choice = html`<${Segmented} label="What the tiles show" options=${METRICS.filter(([each]) => each !== 'gpus' || hasGpus)} value=${metric} change=${setMetric}/>`;
  const tileOf = (of: TileOf) => html`<button key=${of.node.name} type="button" class=${`tile${kept === of.node.name ? ' on' : ''}${dims && hit(of) ? ' hit' : ''}`}
    tabindex=${of.node.name === stopAt ? 0 : -1} aria-label=${density === 'tiles' ? described(of) : undefined} aria-pressed=${String(kept === of.node.name)}
    onMouseEnter=${() => setPointed(of.node.name)} onFocus=${() => { setPointed(of.node.name); setStop(of.node.name); }}
    onClick=${() => setKept(kept === of.node.name ? '' : of.node.name)}><${TileBody} of=${of} metric=${metric} density=${density}/></button>`;
  return html`<${Panel} title=${`Nodes: ${count(nodes.length)}`} kind="p-nodes" right=${density === 'cards' ? undefined : choice}>
    ${metric === 'state' && html`<${Legend} counts=${countByFace(tiles.map(tile => tile.face))} face=${face} choose=${setFace}/>`}
    <div ref=${area} class=${`nodes-${density}${dims ? ' faint' : ''}`} onKeyDown=${onKey} onMouseLeave=${() => setPointed('')}>${tiles.map(tileOf)}</div>
    <${NodeInspector} node=${shown?.node} face=${shown?.face} jobs=${shown?.jobs ?? []} kept=${kept !== ''}/><//>`;
}
