/** Histogram bars: one for every step, including empty ones. */

import type { Bar } from "../../../lib/api/types.gen";
import type { TimeRange } from "../../../lib/time/range";

export interface HistogramData {
  readonly timesMs: readonly number[];
  readonly values: ReadonlyMap<string, readonly number[]>;
  readonly totals: ReadonlyMap<string, number>;
}

export function histogramOf(
  bars: readonly Bar[],
  { sinceMs, untilMs }: TimeRange,
  stepMs: number,
): HistogramData {
  const begin = Math.floor(sinceMs / stepMs) * stepMs;
  const length = Math.max(1, Math.ceil((untilMs - begin) / stepMs));
  const timesMs = Array.from({ length }, (_, i) => begin + i * stepMs);
  const values = new Map<string, number[]>();
  const totals = new Map<string, number>();
  for (const { time, severity, count } of bars) {
    const place = Math.round((Date.parse(time) - begin) / stepMs);
    if (place < 0 || place >= length) continue;
    let list = values.get(severity);
    if (!list) values.set(severity, (list = new Array<number>(length).fill(0)));
    list[place]! += count;
    totals.set(severity, (totals.get(severity) ?? 0) + count);
  }
  return { timesMs, values, totals };
}
