// What the navigation leads to, and the key behind `g` for it.
export interface Tab { view: string; text: string; key: string }
export const TABS: readonly Tab[] = [
  {view: 'now', text: 'Now', key: 'n'}, {view: 'preemptions', text: 'Preemptions', key: 'p'}, {view: 'jobs', text: 'Jobs', key: 'j'},
];
