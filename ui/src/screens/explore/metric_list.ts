/** Search and grouping of the metric list. */

import type { Metric } from "../../lib/api/types.gen";

/** A list entry: a heading or a metric. */
export type Entry =
  | { readonly kind: "group"; readonly name: string; readonly count: number }
  | { readonly kind: "metric"; readonly metric: Metric };

/** Metrics with all typed words in name or description. */
export function searchMetrics(metrics: readonly Metric[], typed: string): Metric[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return metrics.filter((metric) => {
    const text = `${metric.name} ${metric.description ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Group metrics by the first part of their names. */
export function groupByPrefix(metrics: readonly Metric[]): Entry[] {
  const groups = new Map<string, Metric[]>();
  for (const metric of metrics) {
    const group = prefixOf(metric.name);
    groups.set(group, [...(groups.get(group) ?? []), metric]);
  }
  return [...groups].flatMap(([name, members]): Entry[] => [
    { kind: "group", name, count: members.length },
    ...members.map((metric): Entry => ({ kind: "metric", metric })),
  ]);
}

/** `http` of `http.server.duration`, `node` of `node_cpu_seconds`. */
export function prefixOf(name: string): string {
  return /^[^._/:-]+/.exec(name)?.[0] ?? name;
}

/** Display name of a metric kind. */
export function kindName(metric: Pick<Metric, "type" | "is_monotonic">): string {
  if (metric.type === "sum") return metric.is_monotonic ? "counter" : "sum";
  return metric.type === "exponential_histogram" ? "exp. histogram" : metric.type;
}
