// The policy in force, with what is known of each line, and who changed what.
import {useEffect} from 'preact/hooks';
import {Event} from '../../generated/api';
import {useHistory, usePlansAhead} from '../live/ask';
import {now, state} from '../live/live';
import {Line, lineNamed, linesOf, policyChanges} from '../model/policy';
import {count, plural} from '../text/amounts';
import {moment} from '../text/time';
import {html} from '../ui/html';
import {At, Command, Panel, RequestLink} from '../ui/parts';

const REQUESTS_NAMED = 3;
const EVENTS_BY = 'sidingctl events | grep policy-changed';

const whoText = ({by}: Event): string => (by === '' ? 'the file was changed' : `loaded by ${by}`);

function Note({line}: {line: Line}) {
  const parts = [];
  if (line.normally !== undefined) parts.push(line.normally === '' ? 'not there by default' : html`default: <code>${line.normally}</code>`);
  if (line.changed !== undefined) parts.push(html`since <${At} us=${line.changed.atUs}/>, ${whoText(line.changed)}`);
  if (line.leftAlone > 0) {
    const named = line.requests.slice(0, REQUESTS_NAMED), more = line.requests.length - named.length;
    parts.push(html`leaves ${plural(line.leftAlone, 'job')} alone in the plan of ${named.map((id, i) => html`${i > 0 && ', '}<${RequestLink} id=${id}/>`)}${more > 0 && ` and ${count(more)} more`}`);
  }
  return html`${parts.map((part, i) => html`${i > 0 && '; '}${part}`)}`;
}

function Change({event}: {event: Event}) {
  return html`<li><b><${At} us=${event.atUs}/></b> <span class="dim">${whoText(event)}, event ${event.seq}</span>
    <div class="diff">${event.changes.map((text, i) => html`<span key=${i} class=${text.startsWith('+') ? 'plus' : 'minus'}>${text}</span>`)}</div></li>`;
}

function ChangesPanel() {
  // They are about no job.
  const {events, reachesBack} = useHistory([0], 1), changes = policyChanges(events).reverse();
  return html`<${Panel} title="Changes">${changes.length === 0 ? html`<p class="empty">No change is known here.</p>` : html`<ul class="changes">${changes.map(event => html`<${Change} key=${event.seq} event=${event}/>`)}</ul>`}
    <p class="note">${!reachesBack && html`Earlier events are not on this page: <code>${EVENTS_BY}</code>. `}What was changed while sidingd was stopped is no event.</p><//>`;
}

export function PolicyView({query}: {id: string; query: string}) {
  const {policy, events} = state.value, plans = usePlansAhead(), lines = policy === undefined ? [] : linesOf(policy, events, plans), named = lineNamed(lines, query);
  useEffect(() => { if (named > 0) document.getElementById(`L${named}`)?.scrollIntoView({block: 'center'}); }, [named, lines.length > 0]);
  if (policy === undefined) return html`<h1>Policy</h1><p class="dim">Reading the policy in force.</p>`;
  return html`<div class="titleline"><div><h1>Policy</h1><p class="dim">${policy.file === '' ? 'There is no policy file: these are the defaults.' : html`<code>${policy.file}</code>, loaded ${moment(policy.loadedUs, now.value)}.`}
      ${' '}It is shown with every key, as it is in force; comments and the order of the file's own lines are not known here.</p></div></div>
    ${policy.problem !== '' && html`<p class="bar bad inset"><b>The file as it is now is not in force.</b> ${policy.problem}</p>`}
    ${query !== '' && named === 0 && html`<p class="bar warn inset">There is no line ${query} in the policy in force.</p>`}
    <div class="cols"><div><${Panel} title="In force"><table class="yaml"><caption class="vh">The policy by line, with what is known of each</caption><thead class="vh"><tr><th scope="col">Line</th><th scope="col">Text</th><th scope="col">Note</th></tr></thead><tbody>
      ${lines.map(line => html`<tr key=${line.number} id=${`L${line.number}`} class=${line.number === named ? 'sel' : ''} aria-current=${line.number === named ? 'true' : undefined}>
        <td><a href=${`#/policy?L${line.number}`} aria-label=${`Line ${line.number}`}>${line.number}</a></td><td><code>${line.text}</code></td><td><${Note} line=${line}/></td></tr>`)}</tbody></table><//></div>
      <div><${ChangesPanel}/><${Panel} title="As a command"><div class="pad"><${Command}>sidingctl policy show<//></div><//></div></div>`;
}
