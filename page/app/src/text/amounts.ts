// Amounts in words.

const digits = (x: number, fraction: number): string =>
  x.toLocaleString('en-US', {minimumFractionDigits: fraction, maximumFractionDigits: fraction});

export const count = (n: number): string => digits(n, 0);
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
export const nodesText = (n: number): string => plural(n, 'node');

// Node-seconds up to two node-hours, node-hours above.
export function loss(nodeSeconds: number): string {
  if (nodeSeconds >= 7200) return `${digits(nodeSeconds / 3600, 1)} node-h`;
  return `${digits(nodeSeconds, nodeSeconds < 1000 ? 1 : 0)} node-s`;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
export function bytes(n: number): string {
  let unit = 0, x = n;
  for (; x >= 1023.95 && unit < UNITS.length - 1; ++unit) x /= 1024;
  return `${digits(x, unit > 0 && x < 100 ? 1 : 0)} ${UNITS[unit]}`;
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
