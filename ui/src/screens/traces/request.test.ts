import fc from "fast-check";
import { expect, test } from "vitest";

import { searchParams, facetParams, traceParams, parseMillis, formatMillis } from "./request";
import { params } from "./params";

test("durations parse with units", () => {
  expect(["250", "250 ms", "1.5s", "2m", "30us", "30 µs", "1h"].map(parseMillis)).toEqual([
    250, 250, 1500, 120_000, 0.03, 0.03, 3_600_000,
  ]);
  expect(["", "fast", "-1s", "1 parsec", "1s2", "constructor"].map(parseMillis)).toEqual(
    Array(6).fill(null),
  );
});

test("formatted durations parse back", () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-4, max: 1e8, noNaN: true }), (ms) => {
      const read = parseMillis(formatMillis(ms)) ?? NaN;
      expect(Math.abs(read - ms) / ms).toBeLessThan(1e-5);
    }),
  );
  expect(formatMillis(null)).toBe("");
});

test("defaults add no parameters", () => {
  const range = { sinceMs: 0, untilMs: 1000 };
  const chosen = Object.entries(traceParams(params.empty, range)).filter(
    ([, value]) => value && (!Array.isArray(value) || value.length),
  );
  expect(chosen.map(([name]) => name)).toEqual(["since", "until"]);
  expect(traceParams({ ...params.empty, min: 0, is: ["a=b"] }, range)).toMatchObject({
    min_trace_ms: 0,
    filter: ["a=b"],
  });
});

test("the search is carried into the trace", () => {
  expect(searchParams("  ")).toEqual({});
  expect(searchParams("status_code:ERROR")).toEqual({ q: "status_code:ERROR" });
});

test("facet counts ignore conditions on whole traces", () => {
  const state = { ...params.empty, errors: true, through: ["cart"], min: 5, max: 9 };
  expect(facetParams(state, { sinceMs: 0, untilMs: 1000 })).toEqual({
    since: "1970-01-01T00:00:00.000Z",
    until: "1970-01-01T00:00:01.000Z",
    errors: true,
    roots: false,
  });
});
