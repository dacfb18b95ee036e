/** Geometry of a heatmap: columns are time steps, rows are buckets of values. */

import type { Heatmap, HeatmapCell } from "../../lib/api/types.gen";
import type { TimeRange } from "../../lib/time/range";

export interface Bucket {
  readonly low?: number | null;
  readonly high?: number | null;
}

/** A rectangle of cells, both ends inclusive. */
export interface CellBox {
  readonly steps: readonly [number, number];
  readonly buckets: readonly [number, number];
}

export interface HeatmapSelection {
  readonly range: TimeRange;
  /** Null without a bound. */
  readonly low: number | null;
  readonly high: number | null;
  readonly count: number;
  readonly errorCount: number;
}

/**
 * Upper edges of the rows as shares of the height, from the bottom. Rows are as high as their
 * buckets are wide on a logarithmic scale; those without a width there are as high as the median.
 */
export function rowTops(buckets: readonly Bucket[]): number[] {
  const widths = buckets.map(({ low, high }) => {
    if (!low || !high || low < 0 !== high < 0) return null;
    const width = Math.abs(Math.log(high / low));
    return Number.isFinite(width) && width > 0 ? width : null;
  });
  const known = widths.filter((width) => width !== null).sort((one, other) => one - other);
  const usual = known[Math.floor(known.length / 2)] ?? 1;
  let sum = 0;
  const tops = widths.map((width) => (sum += Math.min(width ?? usual, 8 * usual)));
  return tops.map((top) => top / sum);
}

const NEARLY = 0.01;

/**
 * Upper bounds to write on the axis, at least `apart` of the height from each other: first powers of
 * ten, then 2 and 5 times these, then others. Bounds that are nearly round are rounded.
 */
export function axisLabels(buckets: readonly Bucket[], tops: readonly number[], apart: number) {
  const bounds = buckets.flatMap(({ high }, bucket) => {
    if (high === null || high === undefined || tops[bucket]! > 1 - apart / 2) return [];
    const decade = 10 ** Math.floor(Math.log10(Math.abs(high) * (1 + NEARLY)));
    const digit = Math.abs(high) / decade;
    const round = [1, 2, 5].find((each) => Math.abs(digit / each - 1) < NEARLY);
    const rank = round === undefined ? 2 : round === 1 ? 0 : 1;
    return [{ bucket, rank, bound: round ? Math.sign(high) * round * decade : high }];
  });
  const kept: { bucket: number; bound: number }[] = [];
  for (const { bucket, bound } of bounds.toSorted((one, other) => one.rank - other.rank)) {
    if (kept.every((each) => Math.abs(tops[each.bucket]! - tops[bucket]!) >= apart)) {
      kept.push({ bucket, bound });
    }
  }
  return kept;
}

/** Start of a step in milliseconds. */
export function stepMs({ since, step_s }: Heatmap, step: number): number {
  return Date.parse(since ?? "") + step * step_s * 1000;
}

/** The cell at a time and a share of the height, clamped to the heatmap. */
export function cellAt(map: Heatmap, tops: readonly number[], timeMs: number, up: number) {
  const last = Math.max(0, ...map.cells.map(({ step }) => step));
  const step = Math.floor((timeMs - stepMs(map, 0)) / (map.step_s * 1000));
  const bucket = tops.findIndex((top) => up < top);
  return {
    step: Math.min(last, Math.max(0, step)),
    bucket: bucket < 0 ? tops.length - 1 : bucket,
  };
}

export function boxOf(
  one: Pick<HeatmapCell, "step" | "bucket">,
  other: Pick<HeatmapCell, "step" | "bucket">,
): CellBox {
  return {
    steps: [Math.min(one.step, other.step), Math.max(one.step, other.step)],
    buckets: [Math.min(one.bucket, other.bucket), Math.max(one.bucket, other.bucket)],
  };
}

/** What a rectangle of cells contains. */
export function selectionIn(map: Heatmap, { steps, buckets }: CellBox): HeatmapSelection {
  const inside = map.cells.filter(
    ({ step, bucket }) =>
      step >= steps[0] && step <= steps[1] && bucket >= buckets[0] && bucket <= buckets[1],
  );
  return {
    range: { sinceMs: stepMs(map, steps[0]), untilMs: stepMs(map, steps[1] + 1) },
    low: map.buckets[buckets[0]]?.low ?? null,
    high: map.buckets[buckets[1]]?.high ?? null,
    count: inside.reduce((sum, { count }) => sum + count, 0),
    errorCount: inside.reduce((sum, { error_count = 0 }) => sum + error_count, 0),
  };
}

/** A range of values in words. */
export function bucketText({ low, high }: Bucket, value: (value: number) => string): string {
  const [below, above] = [low ?? null, high ?? null];
  if (below === null && above === null) return "any value";
  if (below === null) return `≤ ${value(above!)}`;
  if (above === null) return `> ${value(below)}`;
  return below === above ? value(below) : `${value(below)} – ${value(above)}`;
}
