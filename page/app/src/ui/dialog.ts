// The page's only dialog: opens above everything, gives the focus back when it closes.
import {signal} from '@preact/signals';
import {VNode} from 'preact';
import {useLayoutEffect, useRef} from 'preact/hooks';
import {html} from './html';

// foot: its body has buttons of its own, or there is one that closes it.
type Foot = 'own' | 'close';
interface Content { title: string; body: VNode; foot: Foot }
const content = signal<Content | undefined>(undefined);

// As the browser knows it: it tells of a dialog that Esc has closed only later, after the next key perhaps.
export const isDialogOpen = (): boolean => document.querySelector('dialog[open]') !== null;
export const closeDialog = (): void => { content.value = undefined; };
export const openDialog = (title: string, body: VNode, foot: Foot = 'close'): void => { content.value = {title, body, foot}; };

export function Dialog() {
  const element = useRef<HTMLDialogElement>(null), shown = content.value;
  const onClose = (): void => { if (!element.current?.open) closeDialog(); };  // not the one that was opened meanwhile
  // Before anything else happens: what is typed next is for the dialog.
  useLayoutEffect(() => {
    if (shown !== undefined && !element.current?.open) element.current?.showModal();
    if (shown === undefined && element.current?.open) element.current.close();
  }, [shown]);
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onClose=${onClose} onClick=${(event: MouseEvent) => event.target === element.current && closeDialog()}>
    ${shown && html`<h2 id="dialog-title">${shown.title}</h2>${shown.body}
      ${shown.foot === 'close' && html`<div class="foot"><button type="button" class="btn" onClick=${closeDialog}>Close</button></div>`}`}</dialog>`;
}
