// Amounts in words.

const digits = (x: number, fraction: number): string =>
  x.toLocaleString('en-US', {minimumFractionDigits: fraction, maximumFractionDigits: fraction});

export const count = (n: number): string => digits(n, 0);
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
export const nodesText = (n: number): string => plural(n, 'node');

// "0.97", "12,000".
export const rounded = (x: number, most = 3): string => x.toLocaleString('en-US', {maximumSignificantDigits: most});

export interface Unit { name: string; size: number }

// Node-seconds up to two node-hours, node-hours above.
export const lossUnit = (nodeSeconds: number): Unit => (nodeSeconds >= 7200 ? {name: 'node-h', size: 3600} : {name: 'node-s', size: 1});
export function loss(nodeSeconds: number): string {
  const {name, size} = lossUnit(nodeSeconds);
  return `${digits(nodeSeconds / size, size === 1 && nodeSeconds >= 1000 ? 0 : 1)} ${name}`;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
// In which it has up to three digits, or four.
export function byteUnit(n: number): Unit {
  let unit = 0;
  while (n / 1024 ** unit >= 1023.95 && unit < UNITS.length - 1) ++unit;
  return {name: UNITS[unit] ?? '', size: 1024 ** unit};
}
export function bytes(n: number): string {
  const {name, size} = byteUnit(n), x = n / size;
  return `${digits(x, size > 1 && x < 100 ? 1 : 0)} ${name}`;
}

// "2.8 times"; empty where there is nothing to compare with.
export function times(a: number, b: number): string {
  return b > 0 ? `${digits(a / b, a / b < 10 ? 1 : 0)} times` : '';
}

// "n1", "n1, n2 and n3", "n1 to n8": the runs of names that count up, and the first ones of many.
export function names(list: readonly string[]): string {
  const runs: string[][] = [];
  const parts = (name: string): [string, number] => {
    const match = /^(.*?)(\d+)$/.exec(name);
    return match ? [match[1] ?? '', Number(match[2])] : [name, -1];
  };
  for (const name of list) {
    const run = runs.at(-1), before = run === undefined ? undefined : parts(run.at(-1) ?? '');
    const [stem, number] = parts(name);
    if (run !== undefined && before !== undefined && number >= 0 && before[0] === stem && before[1] === number - 1) run.push(name);
    else runs.push([name]);
  }
  const texts = runs.flatMap(run => (run.length > 2 ? [`${run[0]} to ${run.at(-1)}`] : run));
  if (texts.length > 4) return `${texts.slice(0, 3).join(', ')} and others, ${nodesText(list.length)}`;
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;
}
