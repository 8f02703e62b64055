// The dialog of an order: what it would do, and giving it, once.
import {useEffect, useRef, useState} from 'preact/hooks';
import {ActionPlan, Tier} from '../../generated/api';
import {ApiError} from '../api/client';
import {BUSY_MS} from '../live/asker';
import {standing, state} from '../live/live';
import {Basis, drawKey, give, planOf} from '../live/orders';
import {knownJob} from '../live/state';
import {Action, causeOf, changesBetween, commandOf, deadlineText, eventOf, lossText, otherDeadlines, stepsOf, subjectOf, takesTier, unplannedText, verbText} from '../model/actions';
import {closeDialog, openDialog} from './dialog';
import {html} from './html';
import {At, Command, Segmented} from './parts';

// asking: for the plan. ready: it is shown. giving: the order is under way. given: it was taken. open: whether it was is not known.
// refused: it is not done, or cannot be.
type Phase = 'asking' | 'ready' | 'giving' | 'given' | 'open' | 'refused';
interface Shown {
  phase: Phase;
  basis?: Basis;
  changed?: {why: string; what: string[]};  // since the plan that was shown before
  message?: string;
}

const wordsOf = (error: unknown): string => (error instanceof Error && error.message !== '' ? error.message : 'the controller did not answer');
const isOpen = (error: unknown): boolean => !(error instanceof ApiError) || error.code === 'UNREACHABLE';

function Plan({plan}: {plan: ActionPlan}) {
  const others = otherDeadlines(plan);
  return html`<ol class="plansteps">${stepsOf(plan).map(({at, text}) => html`<li><span class="dim">${at}</span><span>${text}</span></li>`)}</ol>
    <dl class="kv"><dt>Lost</dt><dd>${lossText(plan)}</dd><dt>Deadlines</dt><dd>${plan.deadlines.map(deadlineText).map(({request, name, after, before, isWorse}) => html`<div key=${request}>
      ${name || 'request'} ${request}: <span class=${isWorse ? 'bad-text' : ''}>${after}</span>${after === before ? ', as without this' : `; without this it ${before}`}.</div>`)}${others}</dd></dl>`;
}

const Changed = ({why, what}: {why: string; what: string[]}) => html`<div class="changed" role="alert"><b>Not as it was when this was shown: nothing was done.</b>
  <p>${causeOf(why)}.</p>${what.length > 0 && html`<p>What differs:</p><ul>${what.map(line => html`<li>${line}</li>`)}</ul>`}</div>`;

// One line: what came of it, and the event that it was.
function Outcome({action, basis}: {action: Action; basis: Basis}) {
  const event = eventOf(action, basis.sequence, state.value.events);
  return html`<p class="outcome" role="status"><b>${verbText(action.verb)} of ${subjectOf(action)} is ordered.</b>
    ${event !== undefined && html` Event ${event.seq}, <${At} us=${event.atUs}/>: ${event.text}.`}</p>`;
}

function CopyCommand({text}: {text: string}) {
  const [copied, setCopied] = useState('');
  const copy = (): void => {
    const failed = (): void => setCopied('The browser does not let it be copied; the line can be selected.');
    try {
      navigator.clipboard.writeText(text).then(() => setCopied('Copied.'), failed);
    } catch {
      failed();
    }
  };
  return html`<div class="copy"><${Command}>${text}<//><button type="button" class="btn" onClick=${copy}>Copy as command</button>
    <span class="dim" role="status">${copied}</span></div>`;
}

function Order({action: opened}: {action: Action}) {
  const [action, setAction] = useState(opened), [shown, setShown] = useState<Shown>({phase: 'asking'});
  const key = useRef(''), underWay = useRef(false), leave = useRef<HTMLButtonElement>(null), asked = useRef(0);
  const {phase, basis, changed, message} = shown, live = standing.value === 'live';
  // A new plan is a new order; what is sent again for the same one has the same key.
  const ask = (of: Action, before?: Basis, why?: string): void => {
    const turn = ++asked.current;
    key.current = drawKey();
    planOf(of).then(
        fresh => {
          if (turn !== asked.current) return;
          const what = before?.plan !== undefined && fresh.plan !== undefined ? changesBetween(before.plan, fresh.plan) : [];
          setShown({phase: 'ready', basis: fresh, changed: why === undefined ? undefined : {why, what}});
        },
        (error: unknown) => {
          if (turn !== asked.current) return;
          // Of plans the server makes so many in a while.
          const again = error instanceof ApiError && error.code === 'RESOURCE_EXHAUSTED';
          setShown({phase: again ? 'asking' : 'refused', message: wordsOf(error), changed: why === undefined ? undefined : {why, what: []}});
          if (again) setTimeout(() => { if (turn === asked.current) ask(of, before, why); }, BUSY_MS);
        });
  };
  useEffect(() => { ask(opened); return () => { ++asked.current; }; }, []);
  useEffect(() => { if (['given', 'refused'].includes(phase)) leave.current?.focus(); }, [phase]);
  const choose = (tier: Tier): void => {
    const other = {...action, tier};
    setAction(other);
    setShown({phase: 'asking', basis});
    ask(other);
  };
  const confirm = (): void => {
    if (basis === undefined || underWay.current || !live) return;
    underWay.current = true;
    setShown({phase: 'giving', basis, changed});
    give(action, basis, key.current).then(
        () => setShown({phase: 'given', basis}),
        (error: unknown) => {
          if (isOpen(error)) setShown({phase: 'open', basis, message: wordsOf(error)});
          else if (error instanceof ApiError && error.code === 'FAILED_PRECONDITION') ask(action, basis, wordsOf(error));
          else setShown({phase: 'refused', message: wordsOf(error)});
        }).finally(() => { underWay.current = false; });
  };
  const {verb} = action, isOver = phase === 'given' || phase === 'refused', job = knownJob(state.value, action.job ?? 0);
  const mayConfirm = live && (phase === 'ready' || phase === 'open');
  return html`<div class="in order">
    ${takesTier(action) && !isOver && phase !== 'open' && html`<${Segmented} label="Where the image is kept" options=${[['SHARED', 'Shared storage'], ['LOCAL', 'Local storage']]} value=${action.tier ?? 'SHARED'} change=${choose}/>`}
    ${changed && html`<${Changed} ...${changed}/>`}
    ${phase === 'asking' && html`<p class="dim" role="status">${message === undefined ? 'The controller is asked what this would do.' : `It is asked again by itself: ${message}.`}</p>`}
    ${(phase === 'ready' || phase === 'giving' || phase === 'open') && basis && (basis.plan ? html`<${Plan} plan=${basis.plan}/>` : html`<p>${unplannedText(verb, job?.state ?? '')}</p>`)}
    ${phase === 'refused' && html`<p role="alert"><b>Nothing was done:</b> ${message}.</p>`}
    ${phase === 'open' && html`<p class="changed" role="alert"><b>Whether it was done is not known:</b> ${message}. To send it again does not do it twice.</p>`}
    ${phase === 'given' && basis && html`<${Outcome} action=${action} basis=${basis}/>`}
    ${!live && !isOver && html`<p class="bad-text" role="status">The controller is not heard: nothing can be ordered.</p>`}
    ${basis && !isOver && html`<${CopyCommand} text=${commandOf(action, basis.plan?.sequence ?? 0)}/>`}</div>
    <div class="foot"><button ref=${leave} type="button" class="btn" autofocus onClick=${closeDialog}>${isOver ? 'Close' : 'Cancel'}</button>
      ${!isOver && html`<button type="button" class="btn do" aria-disabled=${String(!mayConfirm)} onClick=${() => { if (mayConfirm) confirm(); }}>${phase === 'open' ? `${verbText(verb)}: send again` : verbText(verb)}</button>`}</div>`;
}

export const openOrder = (action: Action): void => openDialog(`${verbText(action.verb)} ${subjectOf(action)}?`, html`<${Order} key=${`${action.verb} ${action.job} ${action.node}`} action=${action}/>`, 'own');

// Off while the controller is not heard; none where the reader may give none.
export function Actions({of, label}: {of: readonly Action[]; label: string}) {
  if (of.length === 0) return null;
  const live = standing.value === 'live';
  return html`<div class="acts" role="group" aria-label=${label}>${of.map(action => html`<button key=${action.verb} type="button" class="btn" disabled=${!live}
    title=${live ? undefined : 'The controller is not heard'} onClick=${() => openOrder(action)}>${verbText(action.verb)}</button>`)}</div>`;
}
