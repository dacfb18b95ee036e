import { expect, test } from "vitest";

import type { Heatmap } from "../../lib/api/types.gen";
import { axisLabels, boxOf, bucketText, cellAt, rowTops, selectionIn } from "./heatmap";

const MAP: Heatmap = {
  unit: "ms",
  since: "2026-01-01T00:00:00Z",
  step_s: 10,
  buckets: [
    { low: null, high: 10 },
    { low: 10, high: 100 },
    { low: 100, high: 1000 },
    { low: 1000, high: null },
  ],
  cells: [
    { step: 0, bucket: 1, count: 3, error_count: 1 },
    { step: 2, bucket: 2, count: 5, error_count: 0 },
    { step: 2, bucket: 3, count: 1, error_count: 1 },
  ],
};
const SINCE_MS = Date.parse("2026-01-01T00:00:00Z");

test("rows are as high as their buckets are wide, open ones as the others", () => {
  expect(rowTops(MAP.buckets)).toEqual([0.25, 0.5, 0.75, 1]);
  const [first, second] = rowTops([
    { low: 1, high: 10 },
    { low: 10, high: 1000 },
  ]);
  expect(first).toBeCloseTo(1 / 3);
  expect(second).toBe(1);
  expect(rowTops([{ low: 0, high: 0 }])).toEqual([1]);
});

test("a point finds its cell, and a box sums its cells", () => {
  const tops = rowTops(MAP.buckets);
  expect(cellAt(MAP, tops, SINCE_MS + 25_000, 0.6)).toEqual({ step: 2, bucket: 2 });
  expect(cellAt(MAP, tops, SINCE_MS - 9e9, -1)).toEqual({ step: 0, bucket: 0 });
  expect(cellAt(MAP, tops, SINCE_MS + 9e9, 2)).toEqual({ step: 2, bucket: 3 });
  const box = boxOf({ step: 2, bucket: 1 }, { step: 1, bucket: 3 });
  expect(selectionIn(MAP, box)).toEqual({
    range: { sinceMs: SINCE_MS + 10_000, untilMs: SINCE_MS + 30_000 },
    low: 10,
    high: null,
    count: 6,
    errorCount: 1,
  });
});

test("the axis prefers round bounds", () => {
  const buckets = Array.from({ length: 20 }, (_, i) => ({
    low: 10 ** (i / 10),
    high: 10 ** ((i + 1) / 10),
  }));
  const labels = axisLabels(buckets, rowTops(buckets), 0.12).map(({ bound }) => bound);
  expect(labels.toSorted((one, other) => one - other)).toEqual([2, 5, 10, 20, 50]);
});

test("buckets are named by their bounds", () => {
  expect(MAP.buckets.map((bucket) => bucketText(bucket, String))).toEqual([
    "≤ 10",
    "10 – 100",
    "100 – 1000",
    "> 1000",
  ]);
});
