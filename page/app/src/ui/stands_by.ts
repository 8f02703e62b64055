// What the page of a controller that stands by is for: which one is active, the way there, and what works meanwhile.
import {Active} from '../api/client';
import {wayTo} from '../model/active';
import {Child, html} from './html';
import {Command} from './parts';

const Link = ({active}: {active: Active}) => html`<a href=${wayTo(active).address}>its page</a>`;

// In one line, above what was known while this one was active.
export function StandsByLine({active}: {active: Active}) {
  const {address, tunnel} = wayTo(active);
  return html`<span>The active one is ${active.name}${address !== '' && tunnel === '' && html`: <${Link} active=${active}/>`}.</span>`;
}

function TheWay({active}: {active: Active}) {
  const {address, tunnel} = wayTo(active);
  if (address === '') return html`<p>It serves no page. One with your own rights, on the machine where you run this:</p><${Command}>sidingctl page<//>`;
  if (tunnel === '') return html`<p>Its page: <a href=${address}>${address}</a></p>`;
  return html`<p>Its page is for its own machine. This brings it to yours:</p><${Command}>${tunnel}<//>
    <p>Then it is at <a href=${address}>${address}</a>.</p>`;
}

export const StandsBy = ({active, retry}: {active: Active; retry: Child}) => html`<div class="titleline"><h1>This controller stands by</h1>
    <p>The active one is <b>${active.name}</b>.</p></div>
  <section class="panel"><div class="phead"><h2>To the active one</h2></div><div class="pad"><${TheWay} active=${active}/></div></section>
  <section class="panel"><div class="phead"><h2>What works</h2></div><div class="pad"><ul class="works">
    <li>Jobs run, and nodes are served, by the active controller.</li>
    <li>Agents find it by themselves, and so does <code>sidingctl</code> where <code>SIDING_CONTROLLER</code> names both.</li>
    <li>Nothing can be seen or asked here, until this controller takes over. Then it is this page that shows the cluster.</li></ul></div></section>
  <p class="row">${retry}</p>`;
