// What the navigation leads to, and the key behind `g` for it.
export interface Tab { view: string; text: string; key: string }
export const TABS: readonly Tab[] = [
  {view: 'now', text: 'Now', key: 'n'}, {view: 'preemptions', text: 'Preemptions', key: 'p'}, {view: 'jobs', text: 'Jobs', key: 'j'},
  {view: 'whatif', text: 'What if', key: 'w'}, {view: 'trends', text: 'Trends', key: 't'},
  {view: 'policy', text: 'Policy', key: 'y'},
];
