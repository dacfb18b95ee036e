import { expect, test } from "vitest";

import { histogramOf } from "./histogram";

test("every step has a bar, and every count is in one bar", () => {
  const bars = histogramOf(
    [
      { time: "1970-01-01T00:00:10Z", severity: "INFO", count: 3 },
      { time: "1970-01-01T00:00:20Z", severity: "INFO", count: 2 },
      { time: "1970-01-01T00:00:20Z", severity: "ERROR", count: 1 },
    ],
    { sinceMs: 12_000, untilMs: 35_000 },
    10_000,
  );
  expect(bars.timesMs).toEqual([10_000, 20_000, 30_000]);
  expect(bars.values.get("INFO")).toEqual([3, 2, 0]);
  expect(bars.values.get("ERROR")).toEqual([0, 1, 0]);
  expect(Object.fromEntries(bars.totals)).toEqual({ INFO: 5, ERROR: 1 });
});
