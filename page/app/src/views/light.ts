// Pointing at a request or a job lights its nodes.
import {signal} from '@preact/signals';

export const lit = signal(0);  // the job; 0: none
export const lights = (job: number) => ({
  onMouseEnter: () => { lit.value = job; }, onMouseLeave: () => { lit.value = 0; },
  onFocusIn: () => { lit.value = job; }, onFocusOut: () => { lit.value = 0; },
});
