// What if: what a request would cost now or later, or when it could start. Nothing is touched.
import {VNode} from 'preact';
import {useState} from 'preact/hooks';
import {Plan, PlanStep} from '../../generated/api';
import {ApiError} from '../api/client';
import {now, standing, state} from '../live/live';
import {Other, WhatIf, useWhatIf} from '../live/what_if';
import {lossOf, methodText, victims} from '../model/plans';
import {Field, Form, Problems, commandOf, formText, readForm, requestOf} from '../model/whatif';
import {bytes, loss, names, nodesText, plural} from '../text/amounts';
import {clock, duration, moment} from '../text/time';
import {html} from '../ui/html';
import {Command, JobLink, Panel, Table} from '../ui/parts';
import {replaceQuery} from '../ui/route';
import {LeftAlone} from './preemption_why';

const SHOWN = 20;  // jobs that would make way

interface InputProps { label: string; field: Field; form: Form; problems: Problems; hint?: string; set: (field: Field, text: string) => void }
const Input = ({label, field, form, problems, hint, set}: InputProps) => html`<label>${label}
  <input type="text" name=${field} value=${form[field]} autocomplete="off" spellcheck=${false} aria-invalid=${String(problems[field] !== undefined)} aria-describedby=${`hint-${field}`}
    onInput=${(event: InputEvent) => set(field, (event.target as HTMLInputElement).value)}/>
  <small id=${`hint-${field}`} class=${problems[field] === undefined ? '' : 'bad-text'} role="status">${problems[field] ?? hint ?? ''}</small></label>`;

function RequestForm({form, problems, set}: {form: Form; problems: Problems; set: (field: Field, text: string) => void}) {
  const input = (label: string, field: Field, hint?: string): VNode => html`<${Input} label=${label} field=${field} form=${form} problems=${problems} hint=${hint} set=${set}/>`;
  return html`<${Panel} title="Request"><form class="form" onSubmit=${(event: Event) => event.preventDefault()}>
    <div class="two">${input('Nodes', 'nodes')}${input('Slots a node', 'slots')}</div>
    <div class="two">${input('GPUs a node', 'gpus')}${input('Memory a node', 'memory')}</div>
    ${input('Start by', 'by', '+30s, 14:30 (UTC) or earliest')}
    ${input('Not before', 'notBefore', 'where it is announced for later')}
    ${input('Walltime', 'walltime', 'such as 20m: how long it keeps its nodes')}
    ${input('Labels', 'labels', 'what policies ask for, such as account=beamline')}</form><//>`;
}

const sentence = (text: string): string => `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
const afterUs = (us: number, askedUs: number): string => (us <= askedUs ? 'at once' : `in ${duration((us - askedUs) / 1e6)}`);

function Refused({plan, askedUs, set}: {plan: Plan; askedUs: number; set: (field: Field, text: string) => void}) {
  const {earliestUs} = plan, afterS = Math.ceil((earliestUs - askedUs) / 1e6);
  return html`<div class="result no"><p class="big" role="status">${plan.queued ? 'It would wait its turn' : 'It would be refused'}</p>
    <p>${sentence(plan.refusal)} ${earliestUs > 0 ? html`The earliest start that could be kept: <b>${moment(earliestUs, now.value)}</b>, in ${duration(afterS)}.` : 'No time is known at which it would be accepted.'}</p>
    ${earliestUs > 0 && html`<p><button type="button" class="btn" onClick=${() => set('by', 'earliest')}>Ask for the earliest</button></p>`}</div>`;
}

function Leaves({plan, step, askedUs}: {plan: Plan; step: PlanStep; askedUs: number}) {
  return html`<tr><td><${JobLink} id=${step.job} name=${step.jobName}/></td><td class="e">${methodText(step)}</td><td class="r" data-l="frees">${nodesText(step.nodes.length)}</td>
    <td class="r e">${afterUs(step.predictedReleaseUs, askedUs)}</td><td class="r" data-l="image">${step.bytes > 0 ? bytes(step.bytes) : ''}</td>
    <td class="r e" data-l="loses"><b>${loss(lossOf(plan, step.job))}</b></td><td class="dim full">${step.reason}</td></tr>`;
}

function Accepted({plan, askedUs}: {plan: Plan; askedUs: number}) {
  const chosen = victims(plan), marginS = (plan.startByUs - plan.predictedStartUs) / 1e6, who = chosen.slice(0, SHOWN);
  return html`<div class="result"><p class="big" role="status">${sentence(`starts ${afterUs(plan.predictedStartUs, askedUs)}`).slice(0, -1)}, ${duration(marginS)} before its deadline</p>
    <p>It gets ${names(plan.nodes)}. ${chosen.length === 0 ? 'No job has to make way.' : html`${plural(chosen.length, 'job makes', 'jobs make')} way, and ${chosen.length === 1 ? 'loses' : 'lose'} <b>${loss(plan.lossNodeSeconds)}</b>.`}
      ${chosen.length > 0 && (plan.exact ? ' No set loses less, as the planner counts.' : ' There were too many sets to look at all: there may be a better one.')}</p></div>
    ${chosen.length > 0 && html`<${Table} caption="Jobs that would make way" columns=${['Makes way', 'Method', ['Frees', 'r'], ['Free', 'r'], ['Image', 'r'], ['Loses', 'r'], 'Because']}>
      ${who.map(step => html`<${Leaves} key=${step.job} plan=${plan} step=${step} askedUs=${askedUs}/>`)}<//>`}
    ${chosen.length > who.length && html`<p class="note">And ${plural(chosen.length - who.length, 'more job')}.</p>`}`;
}

function PlanPanel({answer, isOld, again, set}: {answer: WhatIf; isOld: boolean; again: () => void; set: (field: Field, text: string) => void}) {
  const {plan, askedUs, form} = answer;
  return html`<div class=${isOld ? 'old' : ''} aria-busy=${String(isOld)}><${Panel} title="Plan" right=${html`<span>of ${clock(askedUs)}</span><button type="button" class="ghost" onClick=${again}>Plan again</button>`}>
    ${plan.feasible ? html`<${Accepted} plan=${plan} askedUs=${askedUs}/>` : html`<${Refused} plan=${plan} askedUs=${askedUs} set=${set}/>`}
    <${LeftAlone} plan=${plan} command=${commandOf(form, askedUs).replace('submit', 'plan --all')}/><//></div>`;
}

function OtherRow({other, most, set}: {other: Other; most: number; set: (field: Field, text: string) => void}) {
  const {by, plan, error} = other, lost = plan?.lossNodeSeconds ?? 0;
  const text = error !== undefined ? 'not answered' : plan === undefined ? '' : plan.feasible ? loss(lost) : plan.queued ? 'would wait' : 'refused';
  return html`<tr><td><button type="button" class="btn" onClick=${() => set('by', by)}>${by}</button></td><td class="r" data-l="makes way">${plan?.feasible ? plural(victims(plan).length, 'job') : ''}</td>
    <td class="r e num" data-l="starts">${plan?.feasible ? moment(plan.predictedStartUs, now.value) : ''}</td><td class="r" data-l="loses"><b>${text}</b></td>
    <td class="w full">${plan?.feasible && most > 0 && html`<svg class="hb" aria-hidden="true"><rect x="0" y="1" width=${`${(100 * lost) / most}%`} height="12"/></svg>`}</td></tr>`;
}

function OthersPanel({answer, others, set}: {answer: WhatIf; others: readonly Other[]; set: (field: Field, text: string) => void}) {
  if (others.length === 0) return null;
  const losses = [answer.plan, ...others.flatMap(({plan}) => plan ?? [])].filter(plan => plan.feasible).map(plan => plan.lossNodeSeconds), most = Math.max(0, ...losses);
  const free = answer.plan.feasible && answer.plan.lossNodeSeconds <= 0;
  return html`<${Panel} title=${free ? 'Sooner' : 'Sooner or later'} right="the same request by other deadlines"><${Table} caption="Loss by deadline" columns=${['Start by', ['Makes way', 'r'], ['Starts', 'r'], ['Loses', 'r'], 'Beside the dearest']}>
    ${others.map(other => html`<${OtherRow} key=${other.by} other=${other} most=${most} set=${set}/>`)}<//>
    ${free && html`<p class="note">It costs nothing as it is: later is no cheaper.</p>`}<//>`;
}

// What the controller says to a request that it makes no plan for.
const WORDS: Record<string, string> = {RESOURCE_EXHAUSTED: 'Plans are asked for too often; it is asked again by itself', UNREACHABLE: 'No answer has come', PERMISSION_DENIED: 'It would be refused', INVALID_ARGUMENT: 'It would be refused', FAILED_PRECONDITION: 'It would be refused'};
const ErrorPanel = ({error, again}: {error: ApiError; again: () => void}) => html`<${Panel} title="Plan"><div class="result no">
  <p class="big" role="status">${WORDS[error.code] ?? `No plan: ${error.code}`}</p>${error.message !== '' && html`<p>${sentence(error.message)}</p>`}
  ${error.code !== 'RESOURCE_EXHAUSTED' && html`<p><button type="button" class="btn" onClick=${again}>Try again</button></p>`}</div><//>`;

const ForUsers = () => html`<h1>What if</h1><p class="dim lead">Plans name jobs, and are made for users: <code>sidingctl page</code> opens this page with your own rights.
  <code>sidingctl plan</code> asks the same.</p>`;

function Asked() {
  return html`<h1>What if</h1><p class="dim lead">Planned as you type, against the cluster as it is. Nothing is touched.</p>`;
}

export function WhatIfView({query}: {id: string; query: string}) {
  const [anew, setAnew] = useState(0), form = readForm(query), known = (state.value.site?.user ?? '') !== '', {request, problems} = requestOf(form, now.value);
  const {last, error, others, isOld} = useWhatIf(known && request !== undefined ? form : undefined, anew);
  if (!known) return html`<${ForUsers}/>`;
  const set = (field: Field, text: string): void => replaceQuery(formText({...form, [field]: text})), again = (): void => setAnew(n => n + 1);
  const silent = standing.value !== 'live';
  return html`<${Asked}/><div class="wi"><${RequestForm} form=${form} problems=${problems} set=${set}/><div>
    ${silent && html`<p class="bar warn inset">It is asked when the controller is heard again.</p>`}
    ${error !== undefined && html`<${ErrorPanel} error=${error} again=${again}/>`}
    ${last !== undefined && html`<${PlanPanel} answer=${last} isOld=${isOld} again=${again} set=${set}/>${!isOld && html`<${OthersPanel} answer=${last} others=${others} set=${set}/>`}`}
    ${last === undefined && error === undefined && !silent && html`<p class="dim" role="status">${request === undefined ? 'The request cannot be read yet.' : 'Planning.'}</p>`}
    <${Panel} title="Submit it"><div class="pad"><${Command}>${commandOf(form, now.value)}<//></div><//></div></div>`;
}
