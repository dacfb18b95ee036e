/** Data of the overview. */

import type { Failure, Service } from "../../lib/api/types.gen";

/** Failures with a message first: they are closer to the cause. */
export function describe(failures: readonly Failure[], count: number): Failure[] {
  return failures
    .toSorted(
      (one, other) =>
        Number(other.message !== null) - Number(one.message !== null) ||
        Number(other.origin_count > 0) - Number(one.origin_count > 0) ||
        other.count - one.count,
    )
    .slice(0, count);
}

export interface ServiceHealth {
  readonly name: string;
  readonly requests: number;
  readonly errors: number;
  readonly p95Nano: number | null;
  readonly errorLogs: number;
}

/** Services, most errors first. */
export function worst(services: readonly Service[]): ServiceHealth[] {
  return services
    .map((service) => ({
      name: service.name,
      requests: service.request_count ?? 0,
      errors: service.error_count ?? 0,
      p95Nano: service.p95_nano ?? null,
      errorLogs: service.error_log_count ?? 0,
    }))
    .toSorted(
      (one, other) =>
        other.errors - one.errors ||
        other.errorLogs - one.errorLogs ||
        other.requests - one.requests ||
        one.name.localeCompare(other.name),
    );
}
