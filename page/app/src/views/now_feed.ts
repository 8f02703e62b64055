// The newest events.
import {Event} from '../../generated/api';
import {knownJob} from '../live/state';
import {state} from '../live/live';
import {nameOf} from '../model/jobs';
import {html} from '../ui/html';
import {At, JobLink, LinkOf, Panel} from '../ui/parts';

const SHOWN = 12;

export function EventLine({event, about}: {event: Event; about: boolean}) {
  const job = knownJob(state.value, event.job);
  const who = event.job === 0 || !about ? null : job === undefined ? html`<${JobLink} id=${event.job} name="job"/>: ` : html`<${LinkOf} job=${job}/>: `;
  return html`<li title=${`event ${event.seq}, ${event.kind}${job === undefined ? '' : `, ${nameOf(job)}`}`}><${At} us=${event.atUs}/>
    <span>${who}${event.text}</span></li>`;
}

export function FeedPanel() {
  const events = state.value.events.slice(0, SHOWN);
  return html`<${Panel} title="Latest events" kind="p-feed">${events.length === 0 ? html`<p class="empty">No event to show.</p>`
    : html`<ul class="feed">${events.map(event => html`<${EventLine} key=${event.seq} event=${event} about=${true}/>`)}</ul>`}<//>`;
}
