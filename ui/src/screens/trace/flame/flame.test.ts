import fc from "fast-check";
import { expect, test } from "vitest";

import { boxAt, buildFlame } from "./flame";
import { groupsOf, quantile } from "../statistics/statistics";
import { traces } from "../model/random_traces";

test("boxes are as wide as their self times and lie inside their parent", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      const flame = buildFlame(spans);
      const all = spans.self.reduce((sum, self) => sum + self, 0);
      expect(flame.width[0]).toBeCloseTo(all);
      for (let box = 1; box < flame.count; box++) {
        const parent = flame.parent[box]!;
        const end = flame.left[box]! + flame.width[box]!;
        expect(flame.left[box]).toBeGreaterThanOrEqual(flame.left[parent]!);
        expect(end).toBeLessThanOrEqual(flame.left[parent]! + flame.width[parent]! + 1e-6);
      }
      expect(flame.calls.reduce((sum, calls) => sum + calls, 0)).toBe(spans.count);
    }),
  );
});

test("a box is found at its drawn position", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      const flame = buildFlame(spans);
      for (let box = 0; box < flame.count; box++) {
        if (flame.width[box] === 0) continue;
        const middle = flame.left[box]! + flame.width[box]! / 2;
        expect(boxAt(flame, flame.depth[box]!, middle)).toBe(box);
      }
    }),
  );
});

test("every span is counted once per grouping", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      for (const by of ["service", "operation"] as const) {
        const groups = groupsOf(spans, by);
        const sum = (of: "count" | "failed" | "total") =>
          groups.reduce((all, group) => all + group[of], 0);
        expect(sum("count")).toBe(spans.count);
        expect(sum("failed")).toBe(spans.failedCount);
        expect(sum("total")).toBe(spans.length.reduce((all, each) => all + each, 0));
        for (const { p50, p95, max } of groups) {
          expect(p50).toBeLessThanOrEqual(p95);
          expect(p95).toBeLessThanOrEqual(max);
        }
      }
    }),
  );
});

test("quantiles are existing values", () => {
  expect(quantile([1, 2, 3, 4], 0.5)).toBe(2);
  expect(quantile([1, 2, 3, 4], 0.95)).toBe(4);
  expect(quantile([7], 0.5)).toBe(7);
});
