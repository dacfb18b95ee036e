/** Queries of one metric over time, and responses as chart lines. */

import type { Series, SeriesAnswer } from "../api/types.gen";
import { rangeParams, type TimeRange } from "../time/range";
import { perSecond } from "../format/units";

export const QUANTILES = ["p50", "p75", "p90", "p95", "p99", "p99.9"] as const;
const NUMBERS = ["avg", "min", "max", "sum", "last", "count"] as const;
const DISTRIBUTIONS = ["avg", "sum", "count", "rate"] as const;
const COUNTERS = ["rate", "increase"] as const;

/** Series per query; more cannot be told apart in a chart. */
export const SERIES_MAX = 50;

const SERVICE = "service_name";

/** Kind of a metric, as far as it decides the aggregates. */
export interface MetricKind {
  readonly type: string;
  readonly is_monotonic?: boolean | null;
}

export interface MetricQuery {
  readonly name: string;
  /** Needed only if a name is used for several types. */
  readonly type: string;
  readonly aggregates: readonly string[];
  readonly by: readonly string[];
  /** `name=value` */
  readonly filter: readonly string[];
  readonly exclude: readonly string[];
  /** Such as 10s or 5m; empty for automatic. */
  readonly step: string;
}

/** Values of one line at the common times. `undefined` connects its neighbours. */
export interface Line {
  readonly name: string;
  readonly labels: Readonly<Record<string, string | null>>;
  readonly aggregate: string;
  readonly values: readonly (number | null | undefined)[];
}

export interface ChartData {
  readonly type: string | null;
  readonly unit: string | null;
  readonly stepS: number;
  readonly timesMs: readonly number[];
  readonly lines: readonly Line[];
  /** There are more series than drawn. */
  readonly isCut: boolean;
}

/** The service of each line if every line has another one, so that service colours can be used. */
export function servicesOf(lines: readonly Line[]): readonly string[] | null {
  const services = lines.flatMap(({ labels }) => {
    const [[name, value] = [], ...others] = Object.entries(labels);
    return name === SERVICE && value && !others.length ? [value] : [];
  });
  const isOfEach = services.length > 0 && new Set(services).size === lines.length;
  return isOfEach ? services : null;
}

/** Aggregates of a metric kind, most useful first. */
export function aggregatesOf(kind: MetricKind): readonly string[] {
  if (isDistribution(kind.type)) return [...QUANTILES, ...DISTRIBUTIONS];
  if (kind.type === "sum" && kind.is_monotonic) return [...COUNTERS, ...NUMBERS];
  if (kind.type === "sum") return ["sum", ...NUMBERS.filter((each) => each !== "sum")];
  return [...NUMBERS, ...QUANTILES];
}

/** Default aggregates of a metric kind. */
export function defaultAggregates(kind: MetricKind): readonly string[] {
  return isDistribution(kind.type) ? ["p50", "p90", "p99"] : aggregatesOf(kind).slice(0, 1);
}

/** Toggle an aggregate: quantiles combine, all others are exclusive. */
export function toggleAggregate(chosen: readonly string[], aggregate: string): readonly string[] {
  if (!isQuantile(aggregate)) return [aggregate];
  const others = chosen.filter((each) => isQuantile(each) && each !== aggregate);
  if (!chosen.includes(aggregate)) {
    return QUANTILES.filter((each) => each === aggregate || others.includes(each));
  }
  return others.length ? others : chosen;
}

export function isDistribution(type: string): boolean {
  return ["histogram", "exponential_histogram", "summary"].includes(type);
}

export function isQuantile(aggregate: string): boolean {
  return /^p\d/.test(aggregate);
}

/** Whether the aggregate is on the scale of recorded values, as exemplars are. */
export function isValueAggregate(aggregate: string): boolean {
  return isQuantile(aggregate) || ["avg", "min", "max", "last"].includes(aggregate);
}

/** Unit of an aggregate. */
export function unitOf(type: string | null, unit: string | null, aggregate: string): string | null {
  const counted = type !== null && isDistribution(type) ? "1" : unit;
  if (aggregate === "count") return "1";
  if (aggregate === "rate") return perSecond(counted);
  if (aggregate === "increase") return counted;
  return unit;
}

/** A step as the API expects it. */
export function stepText(seconds: number): string {
  return `${Math.max(1, Math.round(seconds))}s`;
}

/** Request parameters for one aggregate. */
export function metricParams(
  query: MetricQuery,
  aggregate: string,
  range: TimeRange,
  stepS: number,
  limit = SERIES_MAX,
) {
  const isShort = ["p50", "p90", "p95", "p99"].includes(aggregate);
  return {
    name: query.name,
    ...(isQuantile(aggregate) && !isShort
      ? { aggregate: "quantile", quantile: Number(aggregate.slice(1)) / 100 }
      : { aggregate }),
    ...rangeParams(range),
    step: stepText(stepS),
    group_by: query.by,
    filter: query.filter,
    exclude: query.exclude,
    type: query.type,
    limit,
  };
}

/** Combine responses on one time grid, with an entry for every step. */
export function toChartData(
  query: MetricQuery,
  responses: readonly SeriesAnswer[],
  range: TimeRange,
  stepS: number,
): ChartData {
  const timesMs = gridOf(range, stepS);
  const gapMs =
    3 * 1000 * Math.max(stepS, medianIntervalS(responses.flatMap((a) => a.series)) ?? 0);
  const lines = responses.flatMap((response, i) => {
    const aggregate = query.aggregates[i] ?? "";
    return response.series.map((series) => ({
      name: lineName(query, series.labels, aggregate),
      labels: series.labels,
      aggregate,
      values: placed(series, timesMs, stepS * 1000, gapMs),
    }));
  });
  const typed = responses.find((response) => response.metric_type !== null);
  return {
    type: typed?.metric_type ?? null,
    unit: typed?.unit ?? null,
    stepS,
    timesMs,
    lines,
    isCut: responses.some((response) => response.is_cut),
  };
}

/** Start times of all steps that overlap the range. */
export function gridOf({ sinceMs, untilMs }: TimeRange, stepS: number): number[] {
  const stepMs = stepS * 1000;
  const first = Math.floor(sinceMs / stepMs) * stepMs;
  const count = Math.max(0, Math.ceil((untilMs - first) / stepMs));
  return Array.from({ length: count }, (_, i) => first + i * stepMs);
}

/** Place values on the grid. Near values are connected; longer gaps break the line. */
function placed(
  series: Series,
  timesMs: readonly number[],
  stepMs: number,
  gapMs: number,
): (number | null | undefined)[] {
  const values = new Array<number | null | undefined>(timesMs.length).fill(null);
  const begin = timesMs[0] ?? 0;
  let last = -1;
  for (const [time, value] of series.values) {
    const at = Math.floor((Date.parse(time) - begin) / stepMs);
    if (at < 0 || at >= values.length || !Number.isFinite(value)) continue;
    if (last >= 0 && (at - last) * stepMs <= gapMs) values.fill(undefined, last + 1, at);
    values[at] = value;
    last = at;
  }
  return values;
}

/** Median interval between values in seconds; null if there are too few. */
export function medianIntervalS(all: readonly Series[]): number | null {
  const distances: number[] = [];
  for (const { values } of all) {
    for (let i = 1; i < values.length; i++) {
      distances.push((Date.parse(values[i]![0]) - Date.parse(values[i - 1]![0])) / 1000);
    }
  }
  if (distances.length < 3) return null;
  return distances.sort((one, other) => one - other)[distances.length >> 1] ?? null;
}

function lineName(
  query: MetricQuery,
  labels: Readonly<Record<string, string | null>>,
  aggregate: string,
): string {
  const label = query.by.map((name) => labels[name] ?? "(none)").join(", ");
  if (query.aggregates.length > 1) return label ? `${aggregate} ${label}` : aggregate;
  return label || `${aggregate} of ${query.name}`;
}

/** Parse `90s`, `5m` or `1h` into seconds; null if invalid. */
export function secondsOf(step: string): number | null {
  const match = /^(\d{1,6})([smhd])$/.exec(step.trim());
  if (!match) return null;
  const seconds = Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as "s"];
  return seconds > 0 ? seconds : null;
}

/** Summary of a line. */
export interface LineSummary {
  readonly last: number | null;
  readonly min: number | null;
  readonly max: number | null;
  readonly avg: number | null;
}

export function summarize(values: readonly (number | null | undefined)[]): LineSummary {
  let [last, min, max, sum, count]: [number | null, number, number, number, number] = [
    null,
    Infinity,
    -Infinity,
    0,
    0,
  ];
  for (const value of values) {
    if (value === null || value === undefined) continue;
    last = value;
    min = Math.min(min, value);
    max = Math.max(max, value);
    sum += value;
    count += 1;
  }
  return count
    ? { last, min, max, avg: sum / count }
    : { last: null, min: null, max: null, avg: null };
}
