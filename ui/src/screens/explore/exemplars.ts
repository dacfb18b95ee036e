/** Exemplars: single values with their spans, and the same as dots of a chart. */

import type { SqlAnswer } from "../../lib/api/types.gen";
import { send } from "../../lib/api/client";
import type { MetricAsked } from "../../lib/metrics/metric";
import { linkTo } from "../../lib/router/router.svelte";
import type { Stretch } from "../../lib/time/range";
import { shownIn } from "../../lib/format/units";
import type { Dot } from "../../components/charts/uplot_options";
import { exemplarsSqlOf } from "./metric_sql";

export interface Example {
  readonly value: number;
  readonly timeMs: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly service: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Of so many parts of the time the largest is shown. */
const PARTS = 60;
const EXAMPLES_MAX = 500;

export async function askExamples(
  asked: MetricAsked,
  stretch: Stretch,
  signal: AbortSignal,
): Promise<Example[]> {
  const sql = exemplarsSqlOf(asked, stretch, PARTS);
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

export function hasTrace({ traceId }: Example): boolean {
  return /^[0-9a-f]{32}$/.test(traceId) && !/^0+$/.test(traceId);
}

/** Only those that lead somewhere. */
export function dotsOf(examples: readonly Example[], unit: string | null): Dot[] {
  const value = shownIn(unit);
  return examples.filter(hasTrace).map((example) => ({
    timeMs: example.timeMs,
    value: example.value,
    label: `${value(example.value)} in ${example.service}`,
    href: linkTo("trace", { span: example.spanId }, example.traceId),
  }));
}
