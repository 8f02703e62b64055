import {render} from 'preact';
import {run} from './live/live';
import {followSession} from './live/orders';
import {Frame} from './ui/frame';
import {html} from './ui/html';
import {listenToKeys} from './ui/keys';

const page = document.getElementById('page');
if (page !== null) render(html`<${Frame}/>`, page);
listenToKeys();
followSession();
void run();
