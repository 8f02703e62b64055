// What is around each view: header, navigation, notices.
import {useEffect, useRef, useState} from 'preact/hooks';
import {heardAgoS, link, now, standing, state} from '../live/live';
import {clock, duration} from '../text/time';
import {Notices, NoData} from './notices';
import {Dialog} from './dialog';
import {openFind} from './find';
import {html} from './html';
import {openHelp} from './keys';
import {route} from './route';
import {TABS} from './tabs';
import {VIEWS} from './views';

const QUIET_MS = 300;  // nothing is shown of a reading that is over sooner

function Standing() {
  const is = standing.value;
  if (is === 'live') {
    return html`<span class="link"><i aria-hidden="true"></i><span><span class="narrowhide">live </span>
      <span class="num" title="The controller's time, UTC">${now.value > 0 ? clock(now.value) : ''}</span></span></span>`;
  }
  const text = {reading: 'connecting', refused: link.value.failure?.active === undefined ? 'no data' : 'stands by', lost: state.value.site === undefined ? 'not reached' : `${duration(heardAgoS.value)} ago`}[is];
  return html`<span class=${`link ${is === 'reading' ? '' : 'lost'}`}><i aria-hidden="true"></i>${text}</span>`;
}

// Whose rights this is with; a stranger's page is everybody's.
function Reader() {
  const {user = '', isOperator = false} = state.value.site ?? {};
  return user === '' ? null : html`<span class="dim wide" title=${isOperator ? 'What you see is what operators see' : 'What you see is what this user may see'}>${user}</span>`;
}

function Header({tab}: {tab: string}) {
  return html`<header class="top"><a class="brand" href="#/now"><b>siding</b></a>
    <nav id="nav" aria-label="Views">${TABS.map(each => html`<a key=${each.view} href=${`#/${each.view}`} aria-current=${each.view === tab ? 'page' : undefined} title=${`g ${each.key}`}>${each.text}</a>`)}</nav>
    <div class="topright"><button id="search" type="button" class="ghost" onClick=${openFind}><span class="wide">Find a job, user or node</span>
      <span class="narrow">Find</span> <kbd>/</kbd></button>
      <${Reader}/><${Standing}/><button type="button" class="ghost help" aria-label="Keys" onClick=${openHelp}>?</button></div></header>`;
}

// Nothing, until that takes long enough to be noticed.
function Reading() {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, []);
  return late ? html`<h1>Reading the state of the cluster</h1>
    <p class="dim">Jobs, nodes and the newest events are asked of the controller.</p>` : html`<p class="vh">Reading</p>`;
}

export function Frame() {
  const {view, id, query} = route.value, main = useRef<HTMLElement>(null), first = useRef(true);
  const shown = VIEWS[view] ?? VIEWS['now']!, has = state.value.site !== undefined;
  // After a change of view the focus is on it, and the title says what it is.
  useEffect(() => {
    if (!first.current) {
      main.current?.focus({preventScroll: true});
      scrollTo(0, 0);
    }
    first.current = false;
  }, [view, id]);
  useEffect(() => {
    const title = main.current?.querySelector('h1')?.textContent;
    document.title = title ? `${title} \u2013 siding` : 'siding';
  });
  useEffect(() => { document.body.classList.toggle('past', has && standing.value !== 'live'); }, [has, standing.value]);
  const body = has ? html`<${shown.show} key=${`${view} ${id}`} id=${id} query=${query}/>` : standing.value === 'reading' || standing.value === 'live' ? html`<${Reading}/>` : html`<${NoData}/>`;
  return html`<a class="skip" href="#main" onClick=${(event: Event) => { event.preventDefault(); main.current?.focus(); }}>Skip to content</a>
    <${Header} tab=${shown.tab}/><${Notices}/><main id="main" ref=${main} tabindex="-1" aria-busy=${String(!has)}>${body}</main><${Dialog}/>`;
}
