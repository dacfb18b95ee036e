import fc from "fast-check";
import { expect, test } from "vitest";

import type { Failure, Service, ServiceStep } from "../../lib/api/types.gen";
import { SORTS } from "./params";
import {
  causesFirst,
  serviceLines,
  filterByName,
  trendOverTime,
  rateOf,
  failureReason,
  sortLines,
} from "./red_metrics";

const STRETCH = { sinceMs: 0, untilMs: 60_000 };

function service(name: string, more: Partial<Service> = {}): Service {
  return { name, last_seen: "2026-01-01T00:00:00Z", ...more };
}

function step(ms: number, request_count: number, error_count = 0): ServiceStep {
  return {
    service: "cart",
    time: new Date(ms).toISOString(),
    request_count,
    error_count,
    p50_nano: 3,
    p95_nano: 5,
    p99_nano: 7,
  };
}

function failure(more: Partial<Failure>): Failure {
  return {
    service: "cart",
    operation: "load",
    message: null,
    error_type: null,
    count: 1,
    origin_count: 1,
    last_trace_id: "0".repeat(32),
    ...more,
  };
}

const lines = fc
  .uniqueArray(fc.string(), { maxLength: 12 })
  .chain((names) =>
    fc.tuple(
      ...names.map((name) =>
        fc
          .record({
            request_count: fc.nat(1000),
            error_count: fc.nat(10),
            p95_nano: fc.option(fc.nat()),
            log_count: fc.nat(),
          })
          .map((more) => service(name, more)),
      ),
    ),
  )
  .map((services) => serviceLines(services, [], STRETCH, 10));

test("sorting loses nothing and can be reversed", () => {
  fc.assert(
    fc.property(lines, fc.constantFrom(...SORTS), (given, sort) => {
      const down = sortLines(given, sort, false);
      expect(new Set(down)).toEqual(new Set(given));
      if (sort === "name") expect(sortLines(given, sort, true)).toEqual(down.toReversed());
      if (sort === "rate") {
        const rates = down.map((line) => line.rate);
        expect(rates).toEqual(rates.toSorted((one, other) => other - one));
        expect(sortLines(given, sort, true).map((line) => line.rate)).toEqual(rates.toReversed());
      }
    }),
  );
});

test("rates are per second of the range", () => {
  expect(rateOf(120, STRETCH)).toBe(2);
  const [line] = serviceLines(
    [service("cart", { request_count: 120, error_count: 30 })],
    [],
    STRETCH,
    10,
  );
  expect([line?.rate, line?.errorRate]).toEqual([2, 0.25]);
});

test("every step is present, also without requests", () => {
  const over = trendOverTime([step(10_000, 20, 3), step(30_000, 5), step(90_000, 7)], STRETCH, 10);
  expect(over.rate).toEqual([0, 2, 0, 0.5, 0, 0]);
  expect(over.errors).toEqual([null, 0.15, null, 0, null, null]);
  expect(over.p95).toEqual([null, 5, null, 5, null, null]);
});

test("names match by substring, ignoring case", () => {
  const all = serviceLines([service("Cart"), service("checkout")], [], STRETCH, 10);
  expect(filterByName(all, " CART ").map((line) => line.service.name)).toEqual(["Cart"]);
  expect(filterByName(all, "").length).toBe(2);
});

test("causes come before consequences", () => {
  const cause = failure({ operation: "charge", message: "too late", origin_count: 5, count: 5 });
  const refused = failure({ operation: "POST", error_type: "409", origin_count: 80, count: 80 });
  const above = failure({ operation: "GET /", origin_count: 0, count: 90 });
  expect(causesFirst([above, refused, cause])).toEqual([cause, refused, above]);
});

test("a failure shows its reason", () => {
  expect(failureReason(failure({ message: "too late", error_type: "timeout" }))).toBe("too late");
  expect(failureReason(failure({ error_type: "409" }))).toBe("status 409");
  expect(failureReason(failure({ error_type: "timeout" }))).toBe("timeout");
  expect(failureReason(failure({}))).toBe("no message");
});
