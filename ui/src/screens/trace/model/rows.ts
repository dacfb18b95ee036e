/** Visible rows of the span tree. */

import { ancestors, type Spans } from "./spans";

/** Spans from a depth on are closed; toggled spans are inverted. */
export interface Expansion {
  readonly level: number | null;
  readonly turned: readonly string[];
}

export const ALL_OPEN: Expansion = { level: null, turned: [] };
export const ALL_CLOSED: Expansion = { level: 0, turned: [] };

/** Whether each span is closed. Only parents can be. */
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

/** The rows in order. With `kept`, exactly those spans. */
export function visibleRows(spans: Spans, closed: Uint8Array, kept: Uint8Array | null): Int32Array {
  const rows = new Int32Array(spans.count);
  let count = 0;
  for (let i = 0; i < spans.count;) {
    if (!kept || kept[i]) rows[count++] = i;
    i = closed[i] && !kept ? spans.subtreeEnd[i]! : i + 1;
  }
  return rows.slice(0, count);
}

/** Spans with all their ancestors. */
export function withAncestors(spans: Spans, marks: Uint8Array): Uint8Array {
  const kept = marks.slice();
  for (let i = spans.count - 1; i >= 0; i--) {
    const parent = spans.parent[i]!;
    if (kept[i] && parent >= 0) kept[parent] = 1;
  }
  return kept;
}

/** Toggle a span. */
export function toggle(folding: Expansion, id: string): Expansion {
  const turned = folding.turned.includes(id)
    ? folding.turned.filter((each) => each !== id)
    : [...folding.turned, id];
  return { ...folding, turned };
}

/** More toggled spans make the address too long: everything is opened instead. */
const TURNED_MAX = 100;

/** Open the ancestors of a span, and nothing else. */
export function reveal(spans: Spans, folding: Expansion, index: number): Expansion {
  const closed = closedSpans(spans, folding);
  const hiding = ancestors(spans, index).filter((each) => closed[each]);
  if (hiding.length + folding.turned.length > TURNED_MAX) return ALL_OPEN;
  return hiding.reduce((now, each) => toggle(now, spans.ids[each]!), folding);
}

/** Expand one level more or less; toggled spans are reset. */
export function changeDepth(spans: Spans, folding: Expansion, by: 1 | -1): Expansion {
  const all = spans.deepest;
  const level = Math.min(Math.max((folding.level ?? all) + by, 0), all);
  return { level: level === all ? null : level, turned: [] };
}

/** Row of a span or of its closed ancestor; -1 if there is none. */
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

/** The next flagged span after or before an index, wrapping around; -1 if there is none. */
export function nextFlagged(marks: Uint8Array, from: number, by: 1 | -1): number {
  const count = marks.length;
  for (let step = 1; step <= count; step++) {
    const index = (((from + by * step) % count) + count) % count;
    if (marks[index]) return index;
  }
  return -1;
}
