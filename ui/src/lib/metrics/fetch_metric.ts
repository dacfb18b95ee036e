/** Fetch one metric over time. */

import type { SeriesAnswer } from "../api/types.gen";
import { get } from "../api/client";
import {
  type ChartData,
  toChartData,
  type MetricQuery,
  metricParams,
  secondsOf,
  medianIntervalS,
} from "./metric";
import { type TimeRange, roundStepS } from "../time/range";

/** Default number of steps. */
export const STEPS = 120;

/** Fetch all aggregates. The step grows to the interval between points, unless it is fixed. */
export async function fetchMetric(
  query: MetricQuery,
  range: TimeRange,
  signal: AbortSignal,
): Promise<ChartData> {
  const fixedS = secondsOf(query.step);
  const firstS = fixedS ?? roundStepS(range, STEPS);
  const responses = await fetchAll(query, range, firstS, signal);
  const intervalS = medianIntervalS(responses.flatMap((response) => response.series));
  if (fixedS !== null || intervalS === null || intervalS <= firstS) {
    return toChartData(query, responses, range, firstS);
  }
  // A step shorter than the interval between points would show false peaks.
  const secondS = roundStepS({ sinceMs: 0, untilMs: intervalS * 1000 }, 1);
  return toChartData(query, await fetchAll(query, range, secondS, signal), range, secondS);
}

function fetchAll(query: MetricQuery, range: TimeRange, stepS: number, signal: AbortSignal) {
  return Promise.all(
    query.aggregates.map((aggregate) =>
      get<SeriesAnswer>(
        "api/v1/metrics/query",
        metricParams(query, aggregate, range, stepS),
        signal,
      ),
    ),
  );
}
