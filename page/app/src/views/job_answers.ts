// The three boxes of a job that makes way: what happened, why this job, when it is back.
import {Job, Plan} from '../../generated/api';
import {usePlans} from '../live/ask';
import {knownJob} from '../live/state';
import {state} from '../live/live';
import {Forecast, forecastOf} from '../model/back';
import {nameOf, whyText} from '../model/jobs';
import {Move} from '../model/moves';
import {countKept} from '../model/kept';
import {insteadOf, leavingStep, lossOf, planWith, withoutJob} from '../model/plans';
import {howItWent, isGone, whatHappened} from '../model/story';
import {count, loss, names, plural, times} from '../text/amounts';
import {clock} from '../text/time';
import {html} from '../ui/html';
import {At, Box, FromNow, JobLink, RequestLink} from '../ui/parts';
import {requestAddress} from '../ui/route';

// Without its move, which events tell, what its state says.
function Happened({job, move, request}: {job: Job; move: Move | undefined; request: number}) {
  const known = knownJob(state.value, request), big = move === undefined ? `${job.state} since ${clock(job.stateSinceUs)}` : whatHappened(move);
  return html`<${Box} title="What happened" big=${`${big[0]?.toUpperCase()}${big.slice(1)}`}>It made way for <${RequestLink} id=${request} name=${known && nameOf(known)}/>.
    ${' '}${move && howItWent(move).join(' ')}${job.lostNodeSeconds > 0 && html` It has lost <b>${loss(job.lostNodeSeconds)}</b> so far.`}<//>`;
}

// "jobs 5 and 7 would have made way instead, ..."
function Without({plan, job}: {plan: Plan; job: number}) {
  const without = withoutJob(plan, job);
  if (without === undefined) return null;
  if (!without.feasible) return html` Without it the deadline could not have been kept.`;
  const others = insteadOf(plan, without);
  const who = others.length === 0 ? 'others' : others.map((id, i) => html`${i > 0 && ', '}<${JobLink} id=${id} name=${nameOfKnown(id)}/>`);
  return html` Had it stayed, ${who} would have made way, and all together lost <b>${plan.lossNodeSeconds > 0 ? times(without.lossNodeSeconds, plan.lossNodeSeconds) : loss(without.lossNodeSeconds)}</b>${plan.lossNodeSeconds > 0 && ' as much'}.`;
}
function nameOfKnown(id: number): string {
  const job = knownJob(state.value, id);
  return job === undefined ? 'job' : nameOf(job);
}

function Why({job, plan}: {job: number; plan: Plan}) {
  const step = leavingStep(plan, job);
  if (step === undefined) return null;
  return html`<${Box} title="Why this job" big=${`It loses ${loss(lossOf(plan, job))}`}>
    ${plan.exact && plan.steps.length > 1 && `No other set loses less than the ${loss(plan.lossNodeSeconds)} of all that make way. `}${step.reason ? `${step.reason[0]?.toUpperCase()}${step.reason.slice(1)}.` : ''}<${Without} plan=${plan} job=${job}/>
    ${countKept(plan) > 0 && ` ${plural(countKept(plan), 'job was', 'jobs were')} left alone.`}${' '}<a href=${requestAddress(plan.request)}>All reasons</a><//>`;
}

const NotShown = ({request}: {request: number}) => html`<${Box} title="Why this job" big="Not shown to you">The plan of a request is for those who may act on it.
  They see it with <code>sidingctl explain ${request}</code>.<//>`;

function Back({job, move}: {job: Job; move: Move | undefined}) {
  if (move?.backUs !== undefined && !isGone(job)) {
    return html`<${Box} title="When it is back" big=${html`Since <${At} us=${move.backUs}/>, <${FromNow} at=${move.backUs}/>`}>${job.nodes.length > 0 && `It runs on ${count(job.nodes.length)} of ${plural(job.spec?.nodes ?? 0, 'node')}.`}<//>`;
  }
  const why = whyText(job), forecast = forecastOf(job);
  if (!isGone(job) || (why === '' && forecast === undefined)) return null;
  if (forecast === undefined) return html`<${Box} title="When it is back" big="It is not back yet">${why}.<//>`;
  return html`<${Box} title="When it is back" big=${forecast.predictedUs > 0 ? html`<${At} us=${forecast.predictedUs}/>, <${FromNow} at=${forecast.predictedUs}/>` : 'That is not known'}>
    <${ForecastText} forecast=${forecast}/>${why !== '' && ` Now: ${why}.`}<//>`;
}

// "On n1 and n2, when job 7 on n1 has ended by its walltime. At the latest 14:38:25."
function ForecastText({forecast}: {forecast: Forecast}) {
  const {predictedUs, latestUs, nodes, because, other} = forecast;
  const where = predictedUs > 0 && nodes.length > 0 ? `on ${names(nodes)}${because === '' ? '' : ', '}` : '', text = where + because;
  return html`${text && `${text[0]?.toUpperCase()}${text.slice(1)}`}${other !== 0 && html` (<${JobLink} id=${other} name=${nameOfKnown(other)}/>)`}${text && '.'}
    ${predictedUs > 0 && ' That is when it gets nodes; to be restored takes its time then.'}
    ${latestUs > predictedUs && predictedUs > 0 && html` <b>At the latest <${At} us=${latestUs}/>
      </b>, if nobody leaves later than their walltime ends them.`}`;
}

// Nothing, if it has not made way as far as the page knows.
export function JobAnswers({job, move}: {job: Job; move: Move | undefined}) {
  const request = job.madeWayFor || move?.request || 0;
  const {answer, error} = usePlans(request), plan = answer && planWith(answer.plans, job.id);
  if (request === 0) return null;
  return html`<div class="answer">
    <${Happened} job=${job} move=${move} request=${request}/>${plan && html`<${Why} job=${job.id} plan=${plan}/>`}${error?.isNotShown && html`<${NotShown} request=${request}/>`}<${Back} job=${job} move=${move}/></div>`;
}
