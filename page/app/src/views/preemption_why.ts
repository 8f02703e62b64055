// Why these jobs: the chosen ones, the next best set, and those that were left alone.
import {useState} from 'preact/hooks';
import {Plan, PlanStep} from '../../generated/api';
import {Kept, countKept, keptOf} from '../model/kept';
import {insteadOf, lossOf, methodText, nextBest, victims, withoutJob} from '../model/plans';
import {Row} from '../model/timeline';
import {bytes, count, loss, nodesText, plural, times} from '../text/amounts';
import {clock, duration, durationAfter} from '../text/time';
import {html} from '../ui/html';
import {At, JobLink, Panel, Table} from '../ui/parts';
import {policyAddress} from '../ui/route';
import {RowLink} from './row_link';

const SHOWN = 20;  // of a group, at first

function Without({plan, job}: {plan: Plan; job: number}) {
  const without = withoutJob(plan, job);
  if (without === undefined) return null;
  if (!without.feasible) return html`not in time`;
  return html`${loss(without.lossNodeSeconds)} <span class="dim">${times(without.lossNodeSeconds, plan.lossNodeSeconds)}</span>`;
}

function Chosen({plan, step}: {plan: Plan; step: PlanStep}) {
  return html`<tr><td><${JobLink} id=${step.job} name=${step.jobName}/></td><td class="e">${methodText(step)}</td>
    <td class="r" data-l="frees">${nodesText(step.nodes.length)}</td>
    <td class="r e" data-l="loses"><b>${loss(lossOf(plan, step.job))}</b>
      </td>${plan.without.length > 0 && html`<td class="r" data-l="best set without it"><${Without} plan=${plan} job=${step.job}/>
      </td>`}<td class="dim full">${step.reason}</td></tr>`;
}

function NextBest({plan}: {plan: Plan}) {
  const other = nextBest(plan);
  if (other === undefined) return null;
  const spared = plan.steps.find(step => step.job === other.job), others = insteadOf(plan, other), most = Math.max(plan.lossNodeSeconds, other.lossNodeSeconds, 1e-9);
  const name = (id: number) => plan.kept.find(each => each.job === id)?.jobName ?? '';
  const bar = (text: string, lost: number, kind: string) => html`<div><span>${text}</span><svg class="hb" aria-hidden="true">
    <rect class=${kind} x="1" y="1" width=${`${(98 * lost) / most}%`} height="12"/></svg>
    <b class="num">${loss(lost)}${kind && plan.lossNodeSeconds > 0 ? `, ${times(lost, plan.lossNodeSeconds)}` : ''}</b></div>`;
  return html`<div class="pad">
    <h3>Next best: ${others.length === 0 ? 'others' : others.map((id, i) => html`${i > 0 && ', '}<${JobLink} id=${id} name=${name(id)}/>`)} instead of <${JobLink} id=${other.job} name=${spared?.jobName ?? ''}/></h3>
    <div class="compare">${bar('chosen', plan.lossNodeSeconds, '')}${bar('next best', other.lossNodeSeconds, 'alt')}</div></div>`;
}

function Group({kept, command}: {kept: Kept; command: string}) {
  const [all, setAll] = useState(false), shown = all ? kept.named : kept.named.slice(0, SHOWN), folded = kept.named.length - shown.length;
  return html`<details><summary><span class="r">${count(kept.count)}</span><b>${kept.text}</b></summary><ul>
    ${kept.rule !== '' && html`<li>Rule: <a href=${policyAddress(kept.rule)}>${kept.rule}</a></li>`}
    ${shown.map(each => html`<li key=${each.job}><${JobLink} id=${each.job} name=${each.jobName}/> <span class="dim">${each.reason}</span></li>`)}
    ${folded > 0 && html`<li><button type="button" class="btn" onClick=${() => setAll(true)}>Show the other ${count(folded)}</button></li>`}
    ${kept.count > kept.named.length && html`<li class="dim">${count(kept.count - kept.named.length)} more are not named here: <code>${command}</code></li>`}</ul></details>`;
}

// `command`: the one that names all of them, but for --all.
export function LeftAlone({plan, command}: {plan: Plan; command: string}) {
  const groups = keptOf(plan);
  return groups.length > 0 && html`<div class="phead sub"><h3>Left alone: ${plural(countKept(plan), 'job')}</h3></div>
    ${groups.map(kept => html`<${Group} key=${kept.text} kept=${kept} command=${command}/>`)}`;
}

// Of a request that was planned more than once.
function Steps({number, count: of, choose}: {number: number; count: number; choose: (number: number) => void}) {
  const step = (to: number, text: string, label: string) => html`<button type="button" class="btn" disabled=${to < 1 || to > of} aria-label=${label} onClick=${() => choose(to)}>${text}</button>`;
  return html`<span class="steps" role="group" aria-label="Plan">${step(number - 1, '\u2039', 'The plan before')}<span role="status">Plan ${number} of ${of}</span>${step(number + 1, '\u203a', 'The next plan')}</span>`;
}

function Decision({plan}: {plan: Plan}) {
  const chosen = victims(plan), columns = ['Chosen', 'Method', ['Frees', 'r'], ['Loses', 'r'], ...(plan.without.length > 0 ? [['Best set without it', 'r']] : []), 'Because'];
  const when = plan.decidedUs > 0 && html` at <${At} us=${plan.decidedUs} tenths=${true}/>`;
  if (!plan.feasible) return html`<p class="pad lead">Decided${when}: no plan that keeps the deadline. ${plan.refusal}.</p>`;
  if (chosen.length === 0) return html`<p class="pad lead">Decided${when}: no job had to make way.</p>`;
  const proof = plan.exact ? 'No set loses less, as the planner counts.' : 'There were too many sets to look at all: there may be a better one.';
  return html`<p class="pad lead">Decided${when}: ${plural(chosen.length, 'job frees', 'jobs free')} ${nodesText(plan.nodes.length)}, and ${chosen.length === 1 ? 'loses' : 'lose'} <b>${loss(plan.lossNodeSeconds)}</b>. ${proof}</p>
    <${Table} caption="Chosen jobs" columns=${columns}>${chosen.map(step => html`<${Chosen} key=${step.job} plan=${plan} step=${step}/>`)}<//>`;
}

// `number`: of the plan that is shown, from 1 on.
export function WhyPanel({plans, number, choose}: {plans: readonly Plan[]; number: number; choose: (number: number) => void}) {
  const plan = plans[number - 1];
  if (plan === undefined) return null;
  return html`<${Panel} title="Why these jobs" right=${plans.length > 1 && html`<${Steps} number=${number} count=${plans.length} choose=${choose}/>`}>
    <${Decision} plan=${plan}/><${NextBest} plan=${plan}/>
    ${number < plans.length && plan.steps.length > 0 && plan.without.length === 0 && html`<p class="note">The next best set is known of the newest plan alone.</p>`}
    <${LeftAlone} plan=${plan} command=${`sidingctl explain ${plan.request} --all`}/><//>`;
}

function BackCell({row}: {row: Row}) {
  const {move} = row;
  if (move === undefined) return html`<span class="dim">not told to leave</span>`;
  if (move.over === 'stayed') return html`stayed where it was`;
  if (move.backUs !== undefined) return html`<${At} us=${move.backUs}/> <span class="dim">after ${duration((move.backUs - move.orderedUs) / 1e6)}</span>`;
  return move.over === 'ended' ? html`ended` : html`<span class="dim">away</span>`;
}

// Predicted and observed times, for those that the picture says nothing to.
export function TimesTable({rows, request}: {rows: readonly Row[]; request: number}) {
  const after = (us: number, move: Row['move']) => (move === undefined || us <= 0 ? '' : durationAfter(move.orderedUs, us));
  return html`<${Table} caption=${`Times of those that made way for request ${request}`} columns=${['Job', 'Method', ['Image', 'r'], 'Told', ['Free after: predicted', 'r'], ['observed', 'r'], 'Image whole', 'Back']}>
    ${rows.filter(row => !row.isRequest).map(row => html`<tr key=${row.job}><td><${RowLink} row=${row}/></td>
      <td class="e">${row.move?.way ?? (row.step && methodText(row.step))}</td>
      <td class="r" data-l="image">${row.move && row.move.bytes > 0 ? bytes(row.move.bytes) : ''}</td>
        <td class="e num" data-l="told">${row.move && clock(row.move.orderedUs)}</td>
      <td class="r" data-l="free, predicted">${after(row.predictedFreeUs, row.move)}</td><td class="r e" data-l="observed">
        <b>${after(row.move?.freeUs ?? 0, row.move)}</b></td>
      <td class="num" data-l="image whole">${row.move?.durableUs !== undefined && clock(row.move.durableUs)}</td><td class="e"><${BackCell} row=${row}/></td>
        </tr>`)}<//>`;
}
