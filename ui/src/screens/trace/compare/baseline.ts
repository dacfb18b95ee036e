/** Traces to compare with: others of the same root operation. */

import { get } from "../../../lib/api/client";
import type { TracesAnswer, TraceSummary } from "../../../lib/api/types.gen";
import { rangeParams } from "../../../lib/time/range";
import { nameOf, serviceOf, type Spans } from "../model/spans";

export type Baseline = "typical" | "fast";

/** Half of the time range in which to look. */
const AROUND_MS = 3_600_000;
const TRACES_MAX = 500;
const PERCENTILES: Record<Baseline, number> = { typical: 0.5, fast: 0.1 };

/** A trace without errors of the same root operation within an hour: the median, or p10. */
export async function findBaseline(
  spans: Spans,
  kind: Baseline,
  signal?: AbortSignal,
): Promise<TraceSummary> {
  const sinceMs = Date.parse(spans.begin);
  const { traces } = await get<TracesAnswer>(
    "api/v1/traces",
    {
      ...rangeParams({ sinceMs: sinceMs - AROUND_MS, untilMs: sinceMs + AROUND_MS }),
      filter: [`service_name=${serviceOf(spans, 0)}`, `name=${nameOf(spans, 0)}`],
      roots: true,
      limit: TRACES_MAX,
    },
    signal,
  );
  const others = traces
    .filter(({ trace_id, error_count }) => trace_id !== spans.traceId && !error_count)
    .toSorted((one, other) => one.duration_nano - other.duration_nano);
  const found = others[Math.floor((others.length - 1) * PERCENTILES[kind])];
  if (!found) {
    throw new Error(
      "No other trace of this root operation without errors within an hour. Paste a trace id.",
    );
  }
  return found;
}
