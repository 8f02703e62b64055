// Now: is every deadline safe, what runs where, who is away from their nodes.
import {now, standing, state} from '../live/live';
import {areJobsHidden} from '../live/state';
import {Request, Tone, Verdict, requestsAhead, verdictOf} from '../model/verdict';
import {isAway, nameOf, phaseOf} from '../model/jobs';
import {count} from '../text/amounts';
import {clock, duration} from '../text/time';
import {html} from '../ui/html';
import {Command, Panel} from '../ui/parts';
import {HiddenJobs} from './hidden';
import {AwayPanel} from './now_away';
import {DeadlinesPanel} from './now_deadlines';
import {FeedPanel} from './now_feed';
import {NodesPanel} from './now_nodes';

const ICONS: Record<Tone, unknown> = {
  good: html`<circle cx="20" cy="20" r="17" class="ok-s"/><path d="M12 20.5 17.5 26 28.5 14.5" class="ok-s"/>`,
  bad: html`<path d="M20 4 37.5 35H2.5Z" class="bad-s"/><path d="M20 15V24M20 29.2V29.4" class="bad-s"/>`,
  unknown: html`<circle cx="20" cy="20" r="17" class="dim-s" stroke-dasharray="5 6"/><path d="M20 11V20L26 24" class="dim-s"/>`,
  none: html`<circle cx="20" cy="20" r="17" class="dim-s"/><path d="M12 20H28" class="dim-s"/>`,
};
const Icon = ({tone}: {tone: Tone}) =>
  html`<svg width="40" height="40" viewBox="0 0 40 40" aria-hidden="true" fill="none" stroke-width="3" stroke-linecap="round" stroke-linejoin="round">${ICONS[tone]}</svg>`;

function Detail({verdict, past}: {verdict: Verdict; past: boolean}) {
  const {least, detail} = verdict;
  if (least === undefined) return html`<p>${detail}</p>`;
  return html`<p>Least margin${past ? ' then' : ''}: <b>${duration(least.marginS ?? 0)}</b> (${nameOf(least.job)}, ${least.job.id}).</p>`;
}

function Figures({requests}: {requests: readonly Request[]}) {
  const {jobs, nodes} = state.value, all = [...jobs.values()], phase = (wanted: string) => all.filter(job => phaseOf(job.state) === wanted).length;
  const up = nodes.filter(node => node.state === 'up').length;
  const figures: [string, string, string][] = [
    ['Deadlines ahead', count(requests.length), ''], ['Jobs running', count(phase('runs')), ''], ['Waiting', count(phase('waits')), ''],
    ['Away', count(all.filter(isAway).length), ''], ['Nodes up', count(up), `of ${count(nodes.length)}`]];
  return html`<dl class="figures">${figures.map(([name, value, unit]) => html`<div key=${name}><dt>${name}</dt>
    <dd>${value}${unit && html`<small> ${unit}</small>`}</dd></div>`)}</dl>`;
}

const NewCluster = () => html`<div class="verdict"><div class="say"><h1>No node has connected yet</h1>
  <p>The controller answers, and waits for agents.</p></div></div>
  <${Panel} title="Connect a node"><div class="pad"><p>On each node, start the agent:</p>
    <${Command}>siding-agent --node NAME --shared-dir FOLDER --controller HOST:PORT<//>
    <p class="dim">The node appears here as soon as its agent has dialled.</p></div><//>`;

const pickedNode = (query: string): string => /^node=(.*)$/.exec(query)?.[1] ?? '';

export function NowView({query}: {query: string}) {
  const {jobs, nodes} = state.value, past = standing.value !== 'live';
  if (nodes.length === 0 && jobs.size === 0) return html`<${NewCluster}/>`;
  if (areJobsHidden(state.value)) return html`<${HiddenJobs}/><${NodesPanel} picked=${pickedNode(query)}/><${FeedPanel}/>`;
  const requests = requestsAhead(jobs.values(), now.value), verdict = verdictOf(requests, now.value, past);
  return html`<div class="verdict"><${Icon} tone=${past ? 'unknown' : verdict.tone}/>
      <div class="say"><h1>${verdict.sentence}${past ? `, at ${clock(now.value)}` : ''}</h1><${Detail} verdict=${verdict} past=${past}/></div>
        <${Figures} requests=${requests}/></div>
    ${requests.length > 0 && html`<${DeadlinesPanel} requests=${requests}/>`}
    <div class="cols nowcols"><div><${NodesPanel} picked=${pickedNode(query)}/><${FeedPanel}/></div><div><${AwayPanel}/></div></div>`;
}
