// Whether orders are taken here, and giving them.
import {effect, signal} from '@preact/signals';
import {ActionPlan} from '../../generated/api';
import {ApiError, giveOrder, planAction, readSession, readSite} from '../api/client';
import {Action, hasPlan} from '../model/actions';
import {standing} from './live';

// What an order has to have with it; empty: this page is read only, or it is not known yet.
const token = signal('');
export const takesOrders = (): boolean => token.value !== '';

async function readToken(): Promise<void> {
  token.value = (await readSession()).orderToken;
}

// Asked each time that the controller is heard again: another server may listen there since.
export function followSession(): void {
  effect(() => {
    if (standing.value !== 'live') return;
    readToken().catch((error: unknown) => { if (error instanceof ApiError && error.isNotShown) token.value = ''; });
  });
}

// What an order rests on.
export interface Basis {
  sequence: number;
  plan: ActionPlan | undefined;  // undefined: there is none for this verb
}

export async function planOf(action: Action): Promise<Basis> {
  await readToken();
  if (!hasPlan(action)) return {sequence: (await readSite()).newestEvent + 1, plan: undefined};
  const plan = await planAction(action, token.value);
  return {sequence: plan.sequence, plan};
}

// Sent again with the same key it is not given again.
export const give = (action: Action, basis: Basis, key: string): Promise<unknown> => giveOrder(action, basis.sequence, key, token.value);

export function drawKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('');
}
