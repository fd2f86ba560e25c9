/** Which part of a long list is drawn: places from measured or guessed heights. Pure; numbers in, numbers out. */

/** Where each entry begins, and at the end where all of them end. */
export function placesOf(count: number, heightOf: (index: number) => number): Float64Array {
  const places = new Float64Array(count + 1);
  for (let index = 0; index < count; index += 1) places[index + 1] = (places[index] ?? 0) + heightOf(index);
  return places;
}

/** The entry at this height; the first or last one beyond the ends. */
export function entryAt(places: Float64Array, height: number): number {
  let low = 0;
  let high = places.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((places[middle] ?? 0) <= height) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

export interface Drawn {
  /** Empty height before this run of entries. */
  before: number;
  from: number;
  to: number;
}

/**
 * The runs of entries to draw for a view from `top` to `bottom`, and around it: one, or two when an entry elsewhere is
 * kept (somebody writes in it). `after` is the empty height behind the last.
 */
export function drawnIn(places: Float64Array, top: number, bottom: number, around: number, kept: number | null): { runs: Drawn[]; after: number } {
  const count = places.length - 1;
  if (count <= 0) return { runs: [], after: 0 };
  const from = entryAt(places, top - around);
  const to = entryAt(places, bottom + around) + 1;
  const parts: [number, number][] = [[from, to]];
  if (kept !== null && kept >= 0 && kept < count && (kept < from || kept >= to)) parts.push([kept, kept + 1]);
  parts.sort((one, other) => one[0] - other[0]);
  let done = 0;
  const runs = parts.map(([first, last]) => {
    const before = (places[first] ?? 0) - done;
    done = places[last] ?? 0;
    return { before, from: first, to: last };
  });
  return { runs, after: (places[count] ?? 0) - done };
}
