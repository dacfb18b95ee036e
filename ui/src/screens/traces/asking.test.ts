import fc from "fast-check";
import { expect, test } from "vitest";

import { askedFor, carried, fitting, millisOf, typedMillis } from "./asking";
import { fields } from "./fields";

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

test("a facet is counted without what was chosen from it", () => {
  const asked = { filter: ["kind=SERVER", "kind=CLIENT", "name=GET /"], errors: true };
  expect(
    askedFor({ ...asked, through: ["cart"], min_trace_ms: 5 }, ["kind", "http.route"]),
  ).toEqual([
    { ...asked, name: ["http.route"], limit: 8 },
    { errors: true, filter: ["name=GET /"], name: ["kind"], limit: 8 },
  ]);
});

test("without a choice all are one question", () => {
  expect(askedFor({}, ["a", "b"])).toEqual([{ name: ["a", "b"], limit: 8 }]);
});
