// Whether the window is a phone's.
import {signal} from '@preact/signals';

const query = matchMedia('(max-width: 860px)');
export const narrow = signal(query.matches);
query.addEventListener('change', () => { narrow.value = query.matches; });
