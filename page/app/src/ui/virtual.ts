// A list of which only the rows in sight exist: ten thousand cost what thirty do.
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {html} from './html';
import {rowsInSight} from './rows';

interface Props<T> {
  label: string;
  items: readonly T[];
  rowHeight: number;
  row: (item: T) => unknown; // its cells
  header?: unknown;
  idOf: (item: T) => number;
}

export function VirtualTable<T>({label, items, rowHeight, row, header, idOf}: Props<T>) {
  const box = useRef<HTMLDivElement>(null), [scrolled, setScrolled] = useState(0), [height, setHeight] = useState(600);
  useLayoutEffect(() => { if (box.current) setHeight(box.current.clientHeight); }, [items.length]);
  useEffect(() => {
    const measure = (): void => { if (box.current) setHeight(box.current.clientHeight); };
    addEventListener('resize', measure);
    return () => removeEventListener('resize', measure);
  }, []);
  const [from, to] = rowsInSight(scrolled, height, rowHeight, items.length);
  return html`<div role="table" aria-label=${label} aria-rowcount=${items.length + 1}>${header}
    <div class="vlist" role="rowgroup" tabindex="0" aria-label=${label} ref=${box} onScroll=${(event: Event) => setScrolled((event.target as HTMLElement).scrollTop)}>
      <div class="vspace" role="presentation" style=${{height: `${items.length * rowHeight}px`}}>${items.slice(from, to).map((item, i) =>
        html`<div class="vrow" role="row" key=${idOf(item)} aria-rowindex=${from + i + 2} style=${{top: `${(from + i) * rowHeight}px`, height: `${rowHeight}px`}}>${row(item)}</div>`)}</div></div></div>`;
}
