import fc from "fast-check";
import { expect, test } from "vitest";

import { areaPath, linePath, topOf } from "./sparkline";

test("a line spans the width, with the maximum at the top", () => {
  expect(linePath([0, 2, 4], 80, 21, 4)).toBe("M0,21L40,11L80,1");
  expect(areaPath([0, 4], 80, 21, 4)).toBe("M0,21L0,21L80,1L80,21Z");
});

test("there is no line without values", () => {
  expect(linePath([1, null, 1, 1], 30, 11, 1)).toBe("M0,1M20,1L30,1");
  expect(linePath([null, null], 30, 11, 1)).toBe("");
  expect(linePath([], 30, 11, 1)).toBe("");
});

test("any values stay inside the drawing", () => {
  const value = fc.option(fc.double({ min: 0, max: 1e15, noNaN: true }));
  fc.assert(
    fc.property(fc.array(value), (values) => {
      const path = linePath(values, 90, 20, topOf(values));
      const numbers = path.match(/-?[\d.]+(?:e[+-]?\d+)?/g) ?? [];
      expect(numbers.length).toBe(2 * values.filter((each) => each !== null).length);
      numbers.forEach((text, i) => {
        expect(Number(text)).toBeGreaterThanOrEqual(0);
        expect(Number(text)).toBeLessThanOrEqual(i % 2 ? 20 : 90);
      });
    }),
  );
});
