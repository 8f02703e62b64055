// The page's only dialog: opens above everything, gives the focus back when it closes.
import {signal} from '@preact/signals';
import {VNode} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {html} from './html';

interface Content { title: string; body: VNode }
const content = signal<Content | undefined>(undefined);

export const isDialogOpen = (): boolean => content.value !== undefined;
export const closeDialog = (): void => { content.value = undefined; };
export const openDialog = (title: string, body: VNode): void => { content.value = {title, body}; };

export function Dialog() {
  const element = useRef<HTMLDialogElement>(null), shown = content.value;
  useEffect(() => {
    if (shown !== undefined && !element.current?.open) element.current?.showModal();
    if (shown === undefined && element.current?.open) element.current.close();
  }, [shown]);
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onClose=${closeDialog} onClick=${(event: MouseEvent) => event.target === element.current && closeDialog()}>
    ${shown && html`<h2 id="dialog-title">${shown.title}</h2>${shown.body}
      <div class="foot"><button type="button" class="btn" onClick=${closeDialog}>Close</button></div>`}</dialog>`;
}
