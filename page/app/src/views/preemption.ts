// One request: was its deadline met, who made way and when, what it cost, and why these jobs.
import {Job, Plan} from '../../generated/api';
import {useHistory, useJob, usePlans} from '../live/ask';
import {knownJob} from '../live/state';
import {now, state} from '../live/live';
import {deadlineOf, isOnDemand, nameOf, sizeOf, userOf} from '../model/jobs';
import {outcomeOf} from '../model/outcome';
import {decidingPlan, nextBest} from '../model/plans';
import {isGone} from '../model/story';
import {TimeLine, involved, movedFor, timeLineOf} from '../model/timeline';
import {count, loss, names, nodesText, plural, times} from '../text/amounts';
import {clock, duration, moment} from '../text/time';
import {html} from '../ui/html';
import {Box, Command, FromNow, LinkOf, Panel} from '../ui/parts';
import {jobAddress, jobsAddress, replaceQuery} from '../ui/route';
import {EventsPanel} from './job';
import {TimesTable, WhyPanel} from './preemption_why';
import {TimeLinePanel} from './timeline';
import {Unknown} from './unknown';

const AWAY_NAMED = 3;

function headlineOf(job: Job): string {
  const due = deadlineOf(job), margin = (due - job.firstStartedUs) / 1e6, {kind} = outcomeOf(job);
  if (kind === 'met') return `${nameOf(job)} started ${duration(margin)} before its deadline`;
  if (kind === 'missed') return `${nameOf(job)} started ${duration(-margin)} after its deadline`;
  if (kind === 'refused') return `${nameOf(job)} was refused`;
  return kind === 'ahead' ? `${nameOf(job)} waits for its nodes` : `${nameOf(job)} is ${job.state}`;
}

function DeadlineBox({job, plan}: {job: Job; plan: Plan | undefined}) {
  const {kind, text} = outcomeOf(job), due = deadlineOf(job);
  const predicted = plan?.feasible && plan.predictedStartUs > 0 ? `predicted ${clock(plan.predictedStartUs, true)}` : '';
  if (kind === 'met' || kind === 'missed') {
    return html`<${Box} title="Deadline" big=${text}>Due ${moment(due, now.value)}, started ${clock(job.firstStartedUs, true)}${predicted && `, ${predicted}`}.<//>`;
  }
  if (kind === 'refused') {
    return html`<${Box} title="Deadline" big="refused">${plan?.refusal || job.reason}.${plan !== undefined && plan.earliestUs > 0 && html` The earliest start would have been ${moment(plan.earliestUs, now.value)}.`}<//>`;
  }
  const margin = plan?.feasible ? (due - plan.predictedStartUs) / 1e6 : undefined;
  return html`<${Box} title="Deadline" big=${html`${due > 0 ? moment(due, now.value) : 'none'}${due > 0 && html`, <${FromNow} at=${due}/>`}`}>${predicted && `Start ${predicted}, margin ${duration(margin ?? 0)}.`}${plan !== undefined && !plan.feasible && `${plan.refusal}.`}<//>`;
}

// Of whom neither plan nor events tell, the jobs themselves may.
function WayBox({line, request}: {line: TimeLine; request: number}) {
  const rows = line.rows.filter(row => !row.isRequest), told = new Set(rows.map(row => row.job));
  const more = [...state.value.jobs.values()].filter(job => job.madeWayFor === request && !told.has(job.id));
  const all = rows.length + more.length, nodes = new Set(rows.flatMap(row => row.step?.nodes ?? [])).size;
  const back = rows.filter(row => row.move?.over === 'back').length;
  const away = [...rows.filter(row => row.move?.over === '').flatMap(row => knownJob(state.value, row.job) ?? []), ...more].filter(isGone);
  const parts = away.slice(0, AWAY_NAMED).map(job => html`<${LinkOf} job=${job}/> is ${job.state}`);
  if (back > 0) parts.unshift(html`${back === all && all > 1 ? 'All' : count(back)} ${back === 1 ? 'is' : 'are'} back`);
  if (away.length > AWAY_NAMED) parts.push(html`${count(away.length - AWAY_NAMED)} more are away`);
  return html`<${Box} title="Jobs that make way" big=${all === 0 ? 'none' : `${plural(all, 'job')}${nodes > 0 ? `, ${nodesText(nodes)}` : ''}`}>
    ${parts.map((part, i) => html`${i > 0 && '; '}${part}`)}${parts.length > 0 && '.'}<//>`;
}

function CostBox({plan, plans}: {plan: Plan; plans: readonly Plan[]}) {
  const other = nextBest(plan);
  return html`<${Box} title="Lost" big=${`${loss(plan.lossNodeSeconds)} predicted`}>${other && `Next best set: ${loss(other.lossNodeSeconds)}${plan.lossNodeSeconds > 0 ? `, ${times(other.lossNodeSeconds, plan.lossNodeSeconds)}` : ''}.`}
    ${other === undefined && plan.without.length > 0 && 'No other set would have been in time.'}${plans.length > 1 && ` By plan ${plans.indexOf(plan) + 1} of ${plans.length}.`}<//>`;
}

interface RequestProps { job: Job; plans: readonly Plan[]; hidden: boolean; query: string }
function Request({job, plans, hidden, query}: RequestProps) {
  const plan = decidingPlan(plans), asked = Number(/^plan=(\d{1,6})$/.exec(query)?.[1]), number = plans[asked - 1] === undefined ? plans.findIndex(each => each === plan) + 1 : asked;
  const jobs = [...new Set([job.id, ...involved(plans).map(step => step.job), ...movedFor(state.value.events, job.id)])];
  const {events, reachesBack} = useHistory(jobs, job.submittedUs), line = timeLineOf(job, plans, events, now.value);
  const observed = line.rows.some(row => row.move !== undefined), user = userOf(job);
  return html`<div class="titleline"><div><h1>${headlineOf(job)}</h1>
    <p class="dim">Request ${job.id} of <a href=${jobsAddress(`user:${user}`)}>${user}</a>: ${nodesText(sizeOf(job))}${deadlineOf(job) > 0 ? ` by ${moment(deadlineOf(job), now.value)}` : ''}.
      ${job.nodes.length > 0 && ` It has ${names(job.nodes)}.`} ${plans.length > 1 && `It was planned ${plans.length} times.`} <a href=${jobAddress(job.id)}>The job itself</a></p></div></div>
    <div class="answer"><${DeadlineBox} job=${job} plan=${plan}/>
      <${WayBox} line=${line} request=${job.id}/>${plan?.feasible && html`<${CostBox} plan=${plan} plans=${plans}/>`}</div>
    ${observed && html`<${TimeLinePanel} line=${line} request=${job}/><${Panel} title="Predicted and observed">
      <${TimesTable} rows=${line.rows} request=${job.id}/>${!reachesBack && html`<p class="note">Events from before those that this page has are not in it.</p>`}<//>`}
    ${hidden && html`<p class="bar inset">
      <b>Its plan is not shown to you.</b> It is for those who may act on the request: <code>sidingctl explain ${job.id}</code></p>`}
    ${plans.some(each => each.feasible) && html`<${WhyPanel} plans=${plans} number=${number} choose=${(to: number) => replaceQuery(`plan=${to}`)}/>`}
    ${!observed && html`<${EventsPanel} jobs=${jobs} sinceUs=${job.submittedUs} command=${`sidingctl events --job ${job.id}`}/>`}
    <${Panel} title="As a command"><div class="pad"><${Command}>sidingctl explain ${job.id}<//></div><//>`;
}

export function PreemptionView({id, query}: {id: string; query: string}) {
  const number = /^[1-9]\d{0,15}$/.test(id) ? Number(id) : 0, {answer: job, error} = useJob(number), plans = usePlans(number);
  const crumb = html`<p class="crumb"><a href="#/preemptions">Preemptions</a> / ${id}</p>`;
  if (number === 0 || error !== undefined) return html`${crumb}<${Unknown} what="Request" id=${id} error=${error}/>`;
  if (job === undefined) return html`${crumb}<h1>Request ${id}</h1><p class="dim">Reading what the controller knows of it.</p>`;
  if (!isOnDemand(job)) return html`${crumb}<h1>Job ${id} is no request</h1>
    <p class="dim">It has no deadline, and nobody makes way for it: <a href=${jobAddress(number)}>the job</a>.</p>`;
  return html`${crumb}<${Request} job=${job} plans=${plans.answer?.plans ?? []} hidden=${plans.error?.isNotShown ?? false} query=${query}/>`;
}
