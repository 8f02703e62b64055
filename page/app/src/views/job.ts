// One job: what happened to it, why, when it is back; what it is, and its events.
import {Job} from '../../generated/api';
import {useHistory, useJob} from '../live/ask';
import {state} from '../live/live';
import {takesOrders} from '../live/orders';
import {actionsOn} from '../model/actions';
import {forecastOf} from '../model/back';
import {isOnDemand, sizeOf, userOf, whyText} from '../model/jobs';
import {moveFor, movesOf} from '../model/moves';
import {methodText} from '../model/plans';
import {headline, isGone} from '../model/story';
import {bytes, count, loss, names, nodesText} from '../text/amounts';
import {duration} from '../text/time';
import {html} from '../ui/html';
import {Actions} from '../ui/order';
import {At, Command, Facts, FromNow, JobState, Lasting, Panel, RequestLink} from '../ui/parts';
import {jobsAddress} from '../ui/route';
import {JobAnswers} from './job_answers';
import {EventLine} from './now_feed';
import {Unknown} from './unknown';

function progressText({progress}: Job): string {
  if (progress === undefined) return '';
  const of = progress.bytesTotal > 0 ? ` of ${bytes(progress.bytesTotal)}` : '';
  return `${progress.what} ${bytes(progress.bytesDone)}${of}${progress.bytesPerSecond > 0 ? `, ${bytes(progress.bytesPerSecond)}/s` : ''}`;
}

function factsOf(job: Job): [string, unknown][] {
  const {spec} = job, methods = job.methods.map(method => methodText({method, throughRam: false, early: false}));
  const some = (amount: number | undefined, text: (amount: number) => unknown): unknown => (amount !== undefined && amount > 0 ? text(amount) : '');
  return [
    ['State', html`<${JobState} job=${job}/> for <${Lasting} from=${job.stateSinceUs}/>`],
    ['Progress', progressText(job)],
    ['Nodes', names(job.nodes)],
    ['Makes way for', some(job.madeWayFor, id => html`<${RequestLink} id=${id}/>`)],
    ['Submitted', html`<${At} us=${job.submittedUs}/>, <${FromNow} at=${job.submittedUs}/>`],
    ['Started first', some(job.firstStartedUs, us => html`<${At} us=${us}/>`)],
    ['Ended', some(job.endedUs, us => html`<${At} us=${us}/>${job.exitCode !== 0 && `, exit code ${job.exitCode}`}`)],
    ['Walltime', some(spec?.walltimeUs, us => duration(us / 1e6))],
    ['Priority', spec !== undefined && spec.priority !== 0 ? String(spec.priority) : ''],
    ['Can make way by', methods.join(', ')],
    ['And not by', job.methodsNote],
    ['Preempted', some(job.preemptions, n => (n === 1 ? 'once' : `${count(n)} times`))],
    ['Lost so far', some(job.lostNodeSeconds, loss)],
    ['Memory', some(job.memory, bytes)],
    ['Would go on from', job.checkpoint && `checkpoint ${job.checkpoint}`],
  ];
}

export function EventsPanel({jobs, sinceUs, command}: {jobs: number[]; sinceUs: number; command: string}) {
  const {events, reachesBack} = useHistory(jobs, sinceUs);
  if (events.length === 0) return html`<${Panel} title="What happened to it">
    <p class="empty">No event of it is on this page: <code>${command}</code></p><//>`;
  return html`<${Panel} title="What happened to it">
    <ul class="feed">${[...events].reverse().map(event => html`<${EventLine} key=${event.seq} event=${event} about=${jobs.length > 1}/>`)}</ul>
    ${!reachesBack && html`<p class="note">Earlier events are not on this page: <code>${command}</code></p>`}<//>`;
}

// Of a job that waits and has not made way.
function StartsWhen({job}: {job: Job}) {
  const forecast = job.state === 'pending' ? forecastOf(job) : undefined;
  if (forecast === undefined) return null;
  const time = forecast.predictedUs > 0 ? html`it gets nodes at <${At} us=${forecast.predictedUs}/>, <${FromNow} at=${forecast.predictedUs}/>` : 'until when is not known';
  return html`; ${time}${forecast.because && `: ${forecast.because}`}`;
}

export function JobView({id}: {id: string; query: string}) {
  const number = /^[1-9]\d{0,15}$/.test(id) ? Number(id) : 0, {answer: job, error} = useJob(number);
  const {events} = useHistory([number], job?.submittedUs ?? 0);
  const crumb = html`<p class="crumb"><a href="#/jobs">Jobs</a> / ${id}</p>`;
  if (number === 0 || error !== undefined) return html`${crumb}<${Unknown} what="Job" id=${id} error=${error}/>`;
  if (job === undefined) return html`${crumb}<h1>Job ${id}</h1><p class="dim">Reading what the controller knows of it.</p>`;
  const move = moveFor(movesOf(events), job.madeWayFor), user = userOf(job), waits = !isGone(job) && whyText(job) !== '';
  return html`${crumb}<div class="titleline"><div><h1>${headline(job)}</h1>
    <p class="dim">${isOnDemand(job) ? 'Request' : 'Job'} ${id} of <a href=${jobsAddress(`user:${user}`)}>${user}</a>: ${nodesText(sizeOf(job))}.</p>
    <${Actions} of=${takesOrders() ? actionsOn(job, state.value.site) : []} label="Orders"/></div></div>
    ${waits && html`<p class="bar warn inset"><b>${job.state === 'pending' ? 'Waits:' : 'Note:'}</b> ${whyText(job)}<${StartsWhen} job=${job}/></p>`}
    <${JobAnswers} job=${job} move=${move}/>
    <div class="cols"><div><${EventsPanel} jobs=${[number]} sinceUs=${job.submittedUs} command=${`sidingctl events --job ${id}`}/></div>
      <div><${Panel} title="The job"><div class="pad"><${Facts} of=${factsOf(job)}/></div><//>
        <${Panel} title="As a command"><div class="pad"><${Command}>sidingctl explain ${id}<//></div><//></div></div>`;
}
