/**
 * Difference of two traces. Spans are aligned by their path: the services and operations from the
 * root down. Of several equal siblings, the first matches the first, and so on.
 */

import { nameOf, serviceOf, type Spans } from "../model/spans";

export const CHANGES = ["added", "removed", "slower", "faster", "same"] as const;
export type Change = (typeof CHANGES)[number];

export interface DiffRow {
  readonly service: string;
  readonly name: string;
  readonly depth: number;
  /** Index of the span in each trace; -1 if it has none. */
  readonly current: number;
  readonly baseline: number;
  readonly change: Change;
  /** Nanoseconds that this trace took longer, of the span and of its self time. */
  readonly difference: number;
  readonly selfDifference: number;
}

/** Smaller differences, as a share of the span in the baseline, are noise. */
const SHARE_MIN = 0.1;
/** Nor are differences shown that do not matter for the trace: a share of the longer one. */
const TRACE_SHARE_MIN = 0.001;

/** All spans of both traces as one tree, in waterfall order. */
export function diffTraces(current: Spans, baseline: Spans): DiffRow[] {
  const least = TRACE_SHARE_MIN * Math.max(current.total, baseline.total);
  const rows: DiffRow[] = [];
  // A stack instead of recursion: a trace can be thousands of spans deep.
  const stack = pairs(current, baseline, NONE, NONE, children(current), children(baseline));
  const below = { current: children(current), baseline: children(baseline) };
  const depths = stack.map(() => 0);
  while (stack.length) {
    const [one, other] = stack.pop()!;
    const depth = depths.pop()!;
    rows.push(rowOf(current, baseline, one, other, depth, least));
    const next = pairs(current, baseline, one, other, below.current, below.baseline);
    stack.push(...next);
    depths.push(...next.map(() => depth + 1));
  }
  return rows;
}

const NONE = -1;
type Pair = readonly [number, number];

/** Children of each span; those of -1 are the roots. */
function children(spans: Spans): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, number[]>();
  for (let i = 0; i < spans.count; i++) {
    const parent = spans.parent[i]!;
    const siblings = found.get(parent);
    if (siblings) siblings.push(i);
    else found.set(parent, [i]);
  }
  return found;
}

/** Aligned children of two aligned spans, last first; removed ones follow their predecessor. */
function pairs(
  current: Spans,
  baseline: Spans,
  one: number,
  other: number,
  ofCurrent: ReadonlyMap<number, readonly number[]>,
  ofBaseline: ReadonlyMap<number, readonly number[]>,
): Pair[] {
  const isRoot = one === NONE && other === NONE;
  const mine = one !== NONE || isRoot ? (ofCurrent.get(one) ?? []) : [];
  const theirs = other !== NONE || isRoot ? (ofBaseline.get(other) ?? []) : [];
  const waiting = new Map<string, number[]>();
  for (const i of mine) {
    const key = keyOf(current, i);
    const same = waiting.get(key);
    if (same) same.push(i);
    else waiting.set(key, [i]);
  }
  for (const list of waiting.values()) list.reverse();
  const partner = new Map<number, number>();
  const removedAfter = new Map<number, number[]>();
  let last = NONE;
  for (const i of theirs) {
    const match = waiting.get(keyOf(baseline, i))?.pop();
    if (match !== undefined) {
      partner.set(match, i);
      last = match;
      continue;
    }
    const removed = removedAfter.get(last);
    if (removed) removed.push(i);
    else removedAfter.set(last, [i]);
  }
  const removed = (after: number): Pair[] =>
    (removedAfter.get(after) ?? []).map((i) => [NONE, i] as const);
  const all: Pair[] = removed(NONE);
  for (const i of mine) all.push([i, partner.get(i) ?? NONE], ...removed(i));
  return all.reverse();
}

function keyOf(spans: Spans, i: number): string {
  return `${serviceOf(spans, i)}\0${nameOf(spans, i)}`;
}

function rowOf(
  current: Spans,
  baseline: Spans,
  one: number,
  other: number,
  depth: number,
  least: number,
): DiffRow {
  const [spans, i] = one === NONE ? [baseline, other] : [current, one];
  const now = one === NONE ? 0 : current.length[one]!;
  const before = other === NONE ? 0 : baseline.length[other]!;
  const self =
    (one === NONE ? 0 : current.self[one]!) - (other === NONE ? 0 : baseline.self[other]!);
  return {
    service: serviceOf(spans, i),
    name: nameOf(spans, i),
    depth,
    current: one,
    baseline: other,
    change:
      one === NONE ? "removed" : other === NONE ? "added" : changeOf(now - before, before, least),
    difference: now - before,
    selfDifference: self,
  };
}

function changeOf(difference: number, before: number, least: number): Change {
  if (Math.abs(difference) < Math.max(least, SHARE_MIN * before)) return "same";
  return difference > 0 ? "slower" : difference < 0 ? "faster" : "same";
}

export function countChanges(rows: readonly DiffRow[]): Record<Change, number> {
  const counts = { added: 0, removed: 0, slower: 0, faster: 0, same: 0 };
  for (const { change } of rows) counts[change] += 1;
  return counts;
}

/** Rows of one kind, or all that differ; by the self time that they add or save. */
export function selectRows(
  rows: readonly DiffRow[],
  shown: "all" | "changed" | Change,
  isLargest: boolean,
): readonly DiffRow[] {
  const kept = rows.filter(
    ({ change }) => shown === "all" || (shown === "changed" ? change !== "same" : change === shown),
  );
  if (!isLargest) return kept;
  return kept.toSorted(
    (one, other) => Math.abs(other.selfDifference) - Math.abs(one.selfDifference),
  );
}
