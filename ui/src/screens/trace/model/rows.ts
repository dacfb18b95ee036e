/** Which spans are rows now: what is closed hides what is below it. */

import { ancestors, type Spans } from "./spans";

/** Spans from a depth on are closed; those that were turned are the other way round. */
export interface Expansion {
  readonly level: number | null;
  readonly turned: readonly string[];
}

export const ALL_OPEN: Expansion = { level: null, turned: [] };
export const ALL_CLOSED: Expansion = { level: 0, turned: [] };

/** For each span, whether it is closed. Only what has something below it can be. */
export function closedSpans(spans: Spans, folding: Expansion): Uint8Array {
  const level = folding.level ?? Infinity;
  const closed = new Uint8Array(spans.count);
  for (let i = 0; i < spans.count; i++) {
    closed[i] = Number(spans.children[i]! > 0 && spans.depth[i]! >= level);
  }
  for (const id of folding.turned) {
    const index = spans.indexOf.get(id);
    if (index !== undefined && spans.children[index]! > 0) closed[index]! ^= 1;
  }
  return closed;
}

/** The rows, in order. With `kept`, only those, whatever is closed. */
export function visibleRows(spans: Spans, closed: Uint8Array, kept: Uint8Array | null): Int32Array {
  const rows = new Int32Array(spans.count);
  let count = 0;
  for (let i = 0; i < spans.count;) {
    if (!kept || kept[i]) rows[count++] = i;
    i = closed[i] && !kept ? spans.subtreeEnd[i]! : i + 1;
  }
  return rows.slice(0, count);
}

/** Spans, and all above them: for rows that still are a tree. */
export function withAncestors(spans: Spans, marks: Uint8Array): Uint8Array {
  const kept = marks.slice();
  for (let i = spans.count - 1; i >= 0; i--) {
    const parent = spans.parent[i]!;
    if (kept[i] && parent >= 0) kept[parent] = 1;
  }
  return kept;
}

/** Open what is closed, or close what is open. */
export function toggle(folding: Expansion, id: string): Expansion {
  const turned = folding.turned.includes(id)
    ? folding.turned.filter((each) => each !== id)
    : [...folding.turned, id];
  return { ...folding, turned };
}

/** More than that by hand, and an address becomes too long: everything is opened then. */
const TURNED_MAX = 100;

/** Open what hides a span, and nothing else. */
export function reveal(spans: Spans, folding: Expansion, index: number): Expansion {
  const closed = closedSpans(spans, folding);
  const hiding = ancestors(spans, index).filter((each) => closed[each]);
  if (hiding.length + folding.turned.length > TURNED_MAX) return ALL_OPEN;
  return hiding.reduce((now, each) => toggle(now, spans.ids[each]!), folding);
}

/** One level more of it, or one less; nothing is left of what was turned by hand. */
export function changeDepth(spans: Spans, folding: Expansion, by: 1 | -1): Expansion {
  const all = spans.deepest;
  const level = Math.min(Math.max((folding.level ?? all) + by, 0), all);
  return { level: level === all ? null : level, turned: [] };
}

/** The row of a span, or of the closed one that hides it. -1 when there is none. */
export function rowOf(rows: Int32Array, index: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]! <= index) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The next marked index subtreeEnd one, or before it; around the end. -1 when none is marked. */
export function nextFlagged(marks: Uint8Array, from: number, by: 1 | -1): number {
  const count = marks.length;
  for (let step = 1; step <= count; step++) {
    const index = (((from + by * step) % count) + count) % count;
    if (marks[index]) return index;
  }
  return -1;
}
