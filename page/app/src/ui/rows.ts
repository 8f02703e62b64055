// Which rows of a long list exist.

const BEYOND = 8;  // above and below what is in sight

// The first, and the one behind the last.
export function rowsInSight(scrolled: number, height: number, row: number, count: number): [number, number] {
  const first = Math.max(0, Math.floor(scrolled / row) - BEYOND);
  return [Math.min(first, Math.max(0, count - 1)), Math.min(count, Math.ceil((scrolled + height) / row) + BEYOND)];
}
