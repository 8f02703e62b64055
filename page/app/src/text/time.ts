// Times in words. They are the controller's, in microseconds since 1970 UTC, as the API has them.

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const two = (n: number): string => String(n).padStart(2, '0');

// "14:24:30", or "14:24:30.5" with tenths.
export function clock(us: number, tenths = false): string {
  const at = new Date(us / 1000);
  const text = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
  return tenths ? `${text}.${Math.floor(at.getUTCMilliseconds() / 100)}` : text;
}

// "26 Nov".
export function day(us: number): string {
  const at = new Date(us / 1000);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

// The clock alone on the day of `now`; "26 Nov 14:24:30" on another.
export function moment(us: number, now: number): string {
  const at = new Date(us / 1000), today = new Date(now / 1000);
  if (at.toISOString().slice(0, 10) === today.toISOString().slice(0, 10)) return clock(us);
  const year = at.getUTCFullYear() === today.getUTCFullYear() ? '' : ` ${at.getUTCFullYear()}`;
  return `${day(us)}${year} ${clock(us)}`;
}

// "350 ms", "8.5 s", "3 min 55 s", "2 h 5 min", "3 d 4 h"; with a minus if it is negative.
export function duration(seconds: number): string {
  const sign = seconds < 0 ? '\u2212' : '';
  let s = Math.abs(seconds);
  if (s === 0) return '0 s';
  if (s < 0.9995) return `${sign}${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 59.95) return `${sign}${s < 19.95 && s % 1 > 0.04 && s % 1 < 0.96 ? s.toFixed(1) : Math.round(s)} s`;
  s = Math.round(s);
  const parts: [number, string][] = s < 3600 ? [[60, 'min'], [1, 's']] : s < 86400 ? [[3600, 'h'], [60, 'min']] : [[86400, 'd'], [3600, 'h']];
  const [large, small] = parts as [[number, string], [number, string]];
  const rest = Math.floor((s % large[0]) / small[0]);
  return `${sign}${Math.floor(s / large[0])} ${large[1]}${rest > 0 ? ` ${rest} ${small[1]}` : ''}`;
}

// How long after the first the second is. A plan is made a moment before its orders are given: what it finds free already is so at once.
export const durationAfter = (fromUs: number, toUs: number): string => (toUs <= fromUs ? 'at once' : duration((toUs - fromUs) / 1e6));

// "in 20 s", "6 min ago", "now". Whole seconds: it is read once a second.
export function distance(us: number, now: number): string {
  const seconds = Math.trunc((us - now) / 1e6);
  if (seconds === 0) return 'now';
  return seconds > 0 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
}

// "6 min": how long something has lasted.
export function since(us: number, now: number): string {
  return duration(Math.max(0, Math.trunc((now - us) / 1e6)));
}
