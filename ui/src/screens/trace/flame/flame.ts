/**
 * A trace as a flame graph: calls of the same operation with the same parents are one box, as wide
 * as the self times of its subtree. Children are never wider than their parent, even if they ran in
 * parallel.
 */

import type { Spans } from "../model/spans";

export interface Flame {
  readonly count: number;
  /** Boxes, parents before children; the first is the root. */
  readonly parent: Int32Array;
  readonly depth: Int32Array;
  readonly deepest: number;
  /** A span of the box, for service and name. */
  readonly sample: Int32Array;
  readonly calls: Int32Array;
  readonly failed: Int32Array;
  /** Left edge and width, in nanoseconds. */
  readonly left: Float64Array;
  readonly width: Float64Array;
  /** Box of each span. */
  readonly boxOf: Int32Array;
}

export function buildFlame(spans: Spans): Flame {
  const boxOf = new Int32Array(spans.count);
  const parent: number[] = [-1];
  const sample: number[] = [-1];
  const calls: number[] = [0];
  const failed: number[] = [0];
  const width: number[] = [0];
  const known = new Map<string, number>();
  for (let i = 0; i < spans.count; i++) {
    const hangs = spans.parent[i]! < 0 ? 0 : boxOf[spans.parent[i]!]!;
    const key = `${hangs}/${spans.service[i]}/${spans.name[i]}`;
    let box = known.get(key);
    if (box === undefined) {
      box = parent.length;
      known.set(key, box);
      parent.push(hangs);
      sample.push(i);
      calls.push(0);
      failed.push(0);
      width.push(0);
    }
    boxOf[i] = box;
    calls[box]! += 1;
    failed[box]! += spans.isFailed[i]!;
    width[box]! += spans.self[i]!;
  }
  for (let box = parent.length - 1; box > 0; box--) width[parent[box]!]! += width[box]!;
  return {
    ...placed(parent, width),
    calls: Int32Array.from(calls),
    failed: Int32Array.from(failed),
    sample: Int32Array.from(sample),
    boxOf,
  };
}

function placed(parent: readonly number[], width: readonly number[]) {
  const count = parent.length;
  const depth = new Int32Array(count);
  const left = new Float64Array(count);
  const next = new Float64Array(count);
  let deepest = 0;
  for (let box = 1; box < count; box++) {
    const above = parent[box]!;
    depth[box] = depth[above]! + 1;
    deepest = Math.max(deepest, depth[box]!);
    left[box] = left[above]! + next[above]!;
    next[above]! += width[box]!;
  }
  return {
    count,
    parent: Int32Array.from(parent),
    width: Float64Array.from(width),
    depth,
    left,
    deepest,
  };
}

/** The box at a depth and time; -1 if there is none. */
export function boxAt(flame: Flame, depth: number, at: number): number {
  for (let box = 0; box < flame.count; box++) {
    const begin = flame.left[box]!;
    if (flame.depth[box] === depth && at >= begin && at < begin + flame.width[box]!) return box;
  }
  return -1;
}
