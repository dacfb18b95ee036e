/** Fetch exemplars, and draw them as chart dots. */

import type { SqlAnswer } from "../../lib/api/types.gen";
import { send } from "../../lib/api/client";
import type { MetricQuery } from "../../lib/metrics/metric";
import { linkTo } from "../../lib/router/router.svelte";
import type { TimeRange } from "../../lib/time/range";
import { formatterOf } from "../../lib/format/units";
import type { ChartDot } from "../../components/charts/uplot_options";
import { exemplarsSql } from "./metric_sql";

export interface ExemplarPoint {
  readonly value: number;
  readonly timeMs: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly service: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Number of time buckets; the largest exemplar of each is shown. */
const PARTS = 60;
const EXAMPLES_MAX = 500;

export async function fetchExemplars(
  query: MetricQuery,
  range: TimeRange,
  signal: AbortSignal,
): Promise<ExemplarPoint[]> {
  const sql = exemplarsSql(query, range, PARTS);
  const body = { sql, details: true, rows_max: EXAMPLES_MAX };
  const { rows } = await send<SqlAnswer>("POST", "api/v1/sql", body, signal);
  return rows.flatMap(([value, timeUs, traceId, spanId, service, labels]) =>
    typeof value === "number"
      ? [
          {
            value,
            timeMs: Number(timeUs) / 1000,
            traceId: String(traceId),
            spanId: String(spanId),
            service: String(service),
            labels: (labels ?? {}) as Record<string, string>,
          },
        ]
      : [],
  );
}

export function hasTrace({ traceId }: ExemplarPoint): boolean {
  return /^[0-9a-f]{32}$/.test(traceId) && !/^0+$/.test(traceId);
}

/** Only exemplars with a trace. */
export function dotsOf(examples: readonly ExemplarPoint[], unit: string | null): ChartDot[] {
  const value = formatterOf(unit);
  return examples.filter(hasTrace).map((example) => ({
    timeMs: example.timeMs,
    value: example.value,
    label: `${value(example.value)} in ${example.service}`,
    href: linkTo("trace", { span: example.spanId }, example.traceId),
  }));
}
