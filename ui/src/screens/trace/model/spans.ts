/**
 * A trace as a struct of arrays. A span is an index, in waterfall order: its subtree follows it
 * directly, up to `subtreeEnd`. Fifty thousand spans take a few megabytes, and most operations are
 * one loop.
 */

import type { Outline } from "../../../lib/api/types.gen";

export interface Spans {
  readonly traceId: string;
  readonly count: number;
  readonly isCut: boolean;
  /** Start of the first span, and nanoseconds from there to the last end. */
  readonly begin: string;
  readonly total: number;
  readonly services: readonly string[];
  readonly names: readonly string[];
  readonly kinds: readonly string[];
  readonly ids: readonly string[];
  readonly indexOf: ReadonlyMap<string, number>;
  readonly parent: Int32Array;
  readonly depth: Int32Array;
  readonly deepest: number;
  /** Index after the last descendant. */
  readonly subtreeEnd: Int32Array;
  readonly children: Int32Array;
  readonly service: Int32Array;
  readonly name: Int32Array;
  readonly kind: Int32Array;
  readonly offset: Float64Array;
  readonly length: Float64Array;
  readonly self: Float64Array;
  readonly isFailed: Uint8Array;
  readonly failedCount: number;
  /** Number of failed descendants. */
  readonly failedDescendants: Int32Array;
  readonly isOrphan: Uint8Array;
  /** Started before its parent: clock skew. */
  readonly isSkewed: Uint8Array;
  /** Critical path as pairs of start and end, grouped by span. */
  readonly parts: Float64Array;
  /** Start of each span's pairs in `parts`. */
  readonly partsAt: Int32Array;
}

export function toSpans(outline: Outline): Spans {
  const count = outline.span_id.length;
  const parent = Int32Array.from(outline.parent);
  const offset = Float64Array.from(outline.offset_nano);
  const isFailed = marked(count, outline.failed);
  const [depth, deepest] = depths(parent);
  const { subtreeEnd, children, failedDescendants } = below(parent, isFailed);
  return {
    traceId: outline.trace_id,
    count,
    isCut: outline.is_cut,
    begin: outline.begin,
    total: Math.max(outline.duration_nano, 1),
    services: outline.services,
    names: outline.names,
    kinds: outline.kinds,
    ids: outline.span_id,
    indexOf: indices(outline.span_id),
    parent,
    depth,
    deepest,
    subtreeEnd,
    children,
    service: Int32Array.from(outline.service),
    name: Int32Array.from(outline.name),
    kind: Int32Array.from(outline.kind),
    offset,
    length: Float64Array.from(outline.length_nano),
    self: Float64Array.from(outline.self_nano),
    isFailed,
    failedCount: outline.failed.length,
    failedDescendants,
    isOrphan: marked(count, outline.orphans),
    isSkewed: Uint8Array.from(parent, (above, i) =>
      Number(above >= 0 && offset[i]! < offset[above]!),
    ),
    ...criticalParts(count, outline.critical),
  };
}

export function serviceOf(spans: Spans, index: number): string {
  return spans.services[spans.service[index]!] ?? "";
}

export function nameOf(spans: Spans, index: number): string {
  return spans.names[spans.name[index]!] ?? "";
}

export function kindOf(spans: Spans, index: number): string {
  return spans.kinds[spans.kind[index]!] ?? "";
}

/** Ancestors, nearest first. */
export function ancestors(spans: Spans, index: number): number[] {
  const found: number[] = [];
  for (let i = spans.parent[index] ?? -1; i >= 0; i = spans.parent[i]!) found.push(i);
  return found;
}

/** Time of a span on the critical path. */
export function criticalTime(spans: Spans, index: number): number {
  let sum = 0;
  for (let i = spans.partsAt[index]!; i < spans.partsAt[index + 1]!; i += 2) {
    sum += spans.parts[i + 1]! - spans.parts[i]!;
  }
  return sum;
}

function marked(count: number, indices: readonly number[]): Uint8Array {
  const marks = new Uint8Array(count);
  for (const index of indices) marks[index] = 1;
  return marks;
}

/** With duplicate ids, which no SDK creates, the first span wins. */
function indices(ids: readonly string[]): Map<string, number> {
  const found = new Map<string, number>();
  for (let i = ids.length - 1; i >= 0; i--) found.set(ids[i]!, i);
  return found;
}

function depths(parent: Int32Array): [Int32Array, number] {
  const depth = new Int32Array(parent.length);
  let deepest = 0;
  for (let i = 0; i < parent.length; i++) {
    const above = parent[i]!;
    if (above < 0) continue;
    depth[i] = depth[above]! + 1;
    deepest = Math.max(deepest, depth[i]!);
  }
  return [depth, deepest];
}

function below(parent: Int32Array, isFailed: Uint8Array) {
  const count = parent.length;
  const subtreeEnd = new Int32Array(count);
  const children = new Int32Array(count);
  const failedDescendants = new Int32Array(count);
  for (let i = count - 1; i >= 0; i--) {
    subtreeEnd[i] = Math.max(subtreeEnd[i]!, i + 1);
    const above = parent[i]!;
    if (above < 0) continue;
    subtreeEnd[above] = Math.max(subtreeEnd[above]!, subtreeEnd[i]!);
    children[above]! += 1;
    failedDescendants[above]! += failedDescendants[i]! + isFailed[i]!;
  }
  return { subtreeEnd, children, failedDescendants };
}

/** From unordered triples to pairs in span order. */
function criticalParts(count: number, threes: readonly number[]) {
  const partsAt = new Int32Array(count + 1);
  for (let i = 0; i < threes.length; i += 3) partsAt[threes[i]! + 1]! += 2;
  for (let i = 0; i < count; i++) partsAt[i + 1]! += partsAt[i]!;
  const next = partsAt.slice();
  const parts = new Float64Array((threes.length / 3) * 2);
  for (let i = 0; i < threes.length; i += 3) {
    const at = next[threes[i]!]!;
    parts[at] = threes[i + 1]!;
    parts[at + 1] = threes[i + 2]!;
    next[threes[i]!] = at + 2;
  }
  return { parts, partsAt };
}
