/** Asking for one metric over time. */

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

/** About so many steps fill the time. */
export const STEPS = 120;

/** Ask for all aggregates at once. Where points come seldom, steps are as long as they need. */
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
  // A step that is shorter than the time between points would show peaks that are none.
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
