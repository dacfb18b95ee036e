/** The current query as SQL and as a curl command. */

import { queryString } from "../../lib/api/client";
import { STEPS } from "../../lib/metrics/fetch_metric";
import {
  isDistribution,
  isQuantile,
  type MetricKind,
  type MetricQuery,
  metricParams,
  secondsOf,
} from "../../lib/metrics/metric";
import { type TimeRange, roundStepS } from "../../lib/time/range";

const VIEWS: Readonly<Record<string, string>> = {
  gauge: "gauges",
  sum: "sums",
  histogram: "histograms",
  exponential_histogram: "exponential_histograms",
  summary: "summaries",
};

/** One command per aggregate. */
export function curlCommand(query: MetricQuery, range: TimeRange, origin: string): string {
  const stepS = secondsOf(query.step) ?? roundStepS(range, STEPS);
  return query.aggregates
    .map((aggregate) => {
      const text = queryString(metricParams(query, aggregate, range, stepS));
      return `curl '${origin}/api/v1/metrics/query${text.replaceAll("'", "%27")}'`;
    })
    .join("\n");
}

/** The largest exemplar of each time bucket: the newest ones would all lie at the end. */
export function exemplarsSql(query: MetricQuery, range: TimeRange, parts: number): string {
  const seconds = Math.max(1, Math.ceil((range.untilMs - range.sinceMs) / 1000 / parts));
  const value = "coalesce(one['value_double'], CAST(one['value_int'] AS DOUBLE))";
  const largest = (column: string) => `first_value(${column} ORDER BY ${value} DESC)`;
  return `SELECT max(${value}) AS value,
       ${largest("CAST(one['time_unix_nano'] / 1000 AS VARCHAR)")} AS time_us,
       ${largest("one['trace_id']")} AS trace_id,
       ${largest("one['span_id']")} AS span_id,
       ${largest("service_name")} AS service_name,
       ${largest("attributes")} AS labels
FROM (SELECT service_name, attributes, unnest(exemplars) AS one
      FROM metrics
      WHERE ${conditionsOf(query, range)}
        AND NOT empty(exemplars))
GROUP BY one['time_unix_nano'] / ${seconds}000000000
ORDER BY value DESC`;
}

function conditionsOf(query: MetricQuery, range: TimeRange): string {
  return [
    `metric_name = ${quoted(query.name)}`,
    `time >= ${quoted(new Date(range.sinceMs).toISOString())}`,
    `time < ${quoted(new Date(range.untilMs).toISOString())}`,
    ...conditionsIn(query.filter),
    ...query.exclude.map((pair) => condition(pair, "IS DISTINCT FROM")),
  ].join("\n  AND ");
}

/** Repeated filters on a name match any of their values. */
function conditionsIn(pairs: readonly string[]): string[] {
  const nameOf = (pair: string) => pair.slice(0, pair.indexOf("="));
  return [...new Set(pairs.map(nameOf))].map((name) => {
    const some = pairs.filter((pair) => nameOf(pair) === name);
    const any = some.map((pair) => condition(pair, "=")).join(" OR ");
    return some.length > 1 ? `(${any})` : any;
  });
}

/** The aggregate in SQL. Counter resets and quantile interpolation are left to the API. */
export function metricSql(query: MetricQuery, kind: MetricKind, range: TimeRange): string {
  const stepS = secondsOf(query.step) ?? roundStepS(range, STEPS);
  const labels = query.by.map((label) => `${columnOf(label)} AS ${quoted(label, '"')}`);
  const from = `FROM ${VIEWS[kind.type] ?? "metrics"}\nWHERE ${conditionsOf(query, range)}`;
  const at = `time_bucket('${stepS} seconds', time) AS at`;
  const [aggregate = "avg"] = query.aggregates;
  const grouped = Array.from({ length: labels.length + 1 }, (_, i) => i + 1).join(", ");
  if (kind.type === "summary" && isQuantile(aggregate)) {
    return `SELECT time, ${[...labels, "quantiles"].join(", ")}\n${from}\nORDER BY time`;
  }
  if (isDistribution(kind.type) && isQuantile(aggregate)) {
    return (
      "-- Raw points: the API computes quantiles from their buckets.\n" +
      `SELECT ${[...labels, "*"].join(", ")}\n${from}\nORDER BY time`
    );
  }
  const isGrown = isDistribution(kind.type) || ["rate", "increase"].includes(aggregate);
  if (!isGrown) {
    return (
      `SELECT ${[at, ...labels, `${numbers(aggregate)} AS value`].join(",\n       ")}\n` +
      `${from}\nGROUP BY ${grouped}\nORDER BY 1`
    );
  }
  const names = query.by.map((label) => quoted(label, '"'));
  const columns = isDistribution(kind.type) ? ["count", "sum"] : ["value"];
  const inner = columns.map(
    (column) =>
      `${column} - coalesce(lag(${column}) OVER (PARTITION BY service_instance_id, ` +
      `start_time_unix_nano, attributes ORDER BY time), 0) AS more_${column}`,
  );
  return (
    "-- For cumulative points; for delta points, use the values as they are.\n" +
    `WITH points AS (\nSELECT ${[at, ...labels, ...inner].join(",\n       ")}\n${from})\n` +
    `SELECT ${["at", ...names, `${grown(aggregate, columns[0] ?? "", stepS)} AS value`].join(", ")}\n` +
    `FROM points\nGROUP BY ${grouped}\nORDER BY 1`
  );
}

function numbers(aggregate: string): string {
  if (isQuantile(aggregate)) return `percentile(value, ${Number(aggregate.slice(1)) / 100})`;
  if (aggregate === "last") return "last_value(value ORDER BY time)";
  return `${aggregate}(value)`;
}

function grown(aggregate: string, counter: string, stepS: number): string {
  if (aggregate === "rate") return `sum(more_${counter}) / ${stepS}.0`;
  if (aggregate === "avg") return "sum(more_sum) / sum(more_count)";
  if (aggregate === "sum") return "sum(more_sum)";
  return `sum(more_${counter})`;
}

function condition(pair: string, operator: string): string {
  const at = pair.indexOf("=");
  // In parentheses, because `a IS DISTINCT FROM b AND c` would parse as `b AND c`.
  return `(${columnOf(pair.slice(0, at))} ${operator} ${quoted(pair.slice(at + 1))})`;
}

/** Label syntax of docs/sql.md. */
function columnOf(label: string): string {
  if (label === "service_name") return label;
  for (const [prefix, column] of [
    ["resource.", "resource_attributes"],
    ["scope.", "scope_attributes"],
    ["attribute.", "attributes"],
  ] as const) {
    if (label.startsWith(prefix)) return `${column}[${quoted(label.slice(prefix.length))}]`;
  }
  return `attributes[${quoted(label)}]`;
}

function quoted(text: string, mark = "'"): string {
  return `${mark}${text.replaceAll(mark, mark + mark)}${mark}`;
}
