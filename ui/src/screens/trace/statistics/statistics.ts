/** Counts and durations per service or operation. */

import { nameOf, serviceOf, type Spans } from "../model/spans";

export interface Group {
  readonly service: string;
  /** Null when grouped by service. */
  readonly operation: string | null;
  readonly count: number;
  readonly failed: number;
  readonly total: number;
  readonly self: number;
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
}

export type Measure = Exclude<keyof Group, "service" | "operation">;
export const MEASURES: readonly Measure[] = [
  "count",
  "failed",
  "self",
  "total",
  "p50",
  "p95",
  "max",
];

export function groupsOf(spans: Spans, by: "service" | "operation"): Group[] {
  const members = new Map<number, number[]>();
  for (let i = 0; i < spans.count; i++) {
    const key = spans.service[i]! * (by === "operation" ? spans.names.length : 1);
    const full = by === "operation" ? key + spans.name[i]! : key;
    const those = members.get(full);
    if (those) those.push(i);
    else members.set(full, [i]);
  }
  return [...members.values()].map((those) => groupOf(spans, those, by));
}

function groupOf(spans: Spans, indices: readonly number[], by: "service" | "operation"): Group {
  const lengths = Float64Array.from(indices, (index) => spans.length[index]!).sort();
  const sum = (values: ArrayLike<number>) =>
    indices.reduce((total, index) => total + values[index]!, 0);
  const first = indices[0]!;
  return {
    service: serviceOf(spans, first),
    operation: by === "operation" ? nameOf(spans, first) : null,
    count: indices.length,
    failed: sum(spans.isFailed),
    total: sum(spans.length),
    self: sum(spans.self),
    p50: quantile(lengths, 0.5),
    p95: quantile(lengths, 0.95),
    max: lengths.at(-1)!,
  };
}

/** Nearest-rank quantile. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? 0;
}
