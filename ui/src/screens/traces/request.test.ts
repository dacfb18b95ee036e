import fc from "fast-check";
import { expect, test } from "vitest";

import { carried, countedSpans, fitting, millisOf, typedMillis } from "./request";
import { fields } from "./params";

test("a duration is typed with its unit", () => {
  expect(["250", "250 ms", "1.5s", "2m", "30us", "30 µs", "1h"].map(millisOf)).toEqual([
    250, 250, 1500, 120_000, 0.03, 0.03, 3_600_000,
  ]);
  expect(["", "fast", "-1s", "1 parsec", "1s2", "constructor"].map(millisOf)).toEqual(
    Array(6).fill(null),
  );
});

test("what is shown of a duration can be typed", () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-4, max: 1e8, noNaN: true }), (ms) => {
      const read = millisOf(typedMillis(ms)) ?? NaN;
      expect(Math.abs(read - ms) / ms).toBeLessThan(1e-5);
    }),
  );
  expect(typedMillis(null)).toBe("");
});

test("nothing is asked for that nobody has chosen", () => {
  const stretch = { sinceMs: 0, untilMs: 1000 };
  const chosen = Object.entries(fitting(fields.empty, stretch)).filter(
    ([, value]) => value && (!Array.isArray(value) || value.length),
  );
  expect(chosen.map(([name]) => name)).toEqual(["since", "until"]);
  expect(fitting({ ...fields.empty, min: 0, is: ["a=b"] }, stretch)).toMatchObject({
    min_trace_ms: 0,
    filter: ["a=b"],
  });
});

test("the search goes along into the trace", () => {
  expect(carried("  ")).toEqual({});
  expect(carried("status_code:ERROR")).toEqual({ q: "status_code:ERROR" });
});

test("values are counted of spans: what is demanded of whole traces is left out", () => {
  const state = { ...fields.empty, errors: true, through: ["cart"], min: 5, max: 9 };
  expect(countedSpans(state, { sinceMs: 0, untilMs: 1000 })).toEqual({
    since: "1970-01-01T00:00:00.000Z",
    until: "1970-01-01T00:00:01.000Z",
    errors: true,
    roots: false,
  });
});
