/** Request rate, error rate and latency of services, as table rows. */

import type { Failure, Service, ServiceStep } from "../../lib/api/types.gen";
import type { TimeRange } from "../../lib/time/range";
import type { Values } from "../../components/charts/sparkline";
import type { Sort } from "./params";

export interface ServiceLine {
  readonly service: Service;
  readonly requestCount: number;
  readonly errorCount: number;
  /** Requests per second. */
  readonly rate: number;
  readonly errorRate: number;
  readonly over: ServiceTrend;
}

/** The same per step. */
export interface ServiceTrend {
  readonly rate: Values;
  readonly errors: Values;
  readonly p95: Values;
}

export function serviceLines(
  services: readonly Service[],
  steps: readonly ServiceStep[],
  range: TimeRange,
  stepS: number,
): ServiceLine[] {
  const byService = new Map<string, ServiceStep[]>();
  for (const step of steps) {
    const known = byService.get(step.service);
    if (known) known.push(step);
    else byService.set(step.service, [step]);
  }
  return services.map((service) => {
    const requestCount = service.request_count ?? 0;
    const errorCount = service.error_count ?? 0;
    return {
      service,
      requestCount,
      errorCount,
      rate: rateOf(requestCount, range),
      errorRate: requestCount ? errorCount / requestCount : 0,
      over: trendOverTime(byService.get(service.name) ?? [], range, stepS),
    };
  });
}

export function rateOf(count: number, { sinceMs, untilMs }: TimeRange): number {
  return count / Math.max(0.001, (untilMs - sinceMs) / 1000);
}

/** Steps without requests have no latency and no error rate. */
export function trendOverTime(
  steps: readonly ServiceStep[],
  range: TimeRange,
  stepS: number,
): ServiceTrend {
  const stepMs = stepS * 1000;
  const first = Math.floor(range.sinceMs / stepMs);
  const count = Math.max(1, Math.ceil(range.untilMs / stepMs) - first);
  const rate = Array<number>(count).fill(0);
  const errors = Array<number | null>(count).fill(null);
  const p95 = Array<number | null>(count).fill(null);
  for (const step of steps) {
    const place = Math.floor(Date.parse(step.time) / stepMs) - first;
    if (place < 0 || place >= count) continue;
    rate[place] = step.request_count / stepS;
    errors[place] = step.error_count / step.request_count;
    p95[place] = step.p95_nano;
  }
  return { rate, errors, p95 };
}

const MEASURES: Record<Exclude<Sort, "name">, (line: ServiceLine) => number> = {
  errors: (line) => line.errorRate,
  rate: (line) => line.rate,
  p50: (line) => line.service.p50_nano ?? -1,
  p95: (line) => line.service.p95_nano ?? -1,
  p99: (line) => line.service.p99_nano ?? -1,
  logs: (line) => line.service.log_count ?? 0,
};

/** Descending, names ascending; `isUp` reverses it. Ties are broken by name. */
export function sortLines(lines: readonly ServiceLine[], sort: Sort, isUp: boolean): ServiceLine[] {
  const byName = (one: ServiceLine, other: ServiceLine) =>
    one.service.name < other.service.name ? -1 : Number(one.service.name > other.service.name);
  const sign = isUp ? -1 : 1;
  if (sort === "name") return lines.toSorted((one, other) => sign * byName(one, other));
  const measure = MEASURES[sort];
  return lines.toSorted(
    (one, other) => sign * (measure(other) - measure(one)) || byName(one, other),
  );
}

export function filterByName(lines: readonly ServiceLine[], part: string): ServiceLine[] {
  const needle = part.trim().toLowerCase();
  return lines.filter((line) => line.service.name.toLowerCase().includes(needle));
}

/** A 4xx response is the client's fault, not the service's. */
function isRefusal({ error_type, message }: Failure): boolean {
  return message === null && /^4\d\d$/.test(error_type ?? "");
}

/** Root causes first, then rejected requests, then failures caused by a callee. */
export function causesFirst(failures: readonly Failure[]): Failure[] {
  const rank = (failure: Failure) => (failure.origin_count === 0 ? 2 : isRefusal(failure) ? 1 : 0);
  return failures.toSorted(
    (one, other) =>
      rank(one) - rank(other) || other.origin_count - one.origin_count || other.count - one.count,
  );
}

/** Short reason of a failure. */
export function failureReason({ message, error_type }: Failure): string {
  if (message) return message;
  if (!error_type) return "no message";
  return /^\d{3}$/.test(error_type) ? `status ${error_type}` : error_type;
}
