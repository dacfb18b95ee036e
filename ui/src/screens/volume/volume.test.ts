import fc from "fast-check";
import { expect, test } from "vitest";

import type { Volume } from "../../lib/api/types.gen";
import {
  bytesOf,
  colorsOf,
  costOf,
  growthText,
  layersOf,
  volumeLines,
  sortLines,
  perDay,
  SIGNALS,
  stepsOf,
} from "./volume";

const STEP = 60_000;
const volume = fc.record({
  service: fc.constantFrom("a", "b", "c", "d", "__proto__", "(other)"),
  signal: fc.constantFrom(...SIGNALS),
  row_count: fc.nat(10_000),
  time: fc.nat(9).map((step) => new Date(step * STEP).toISOString()),
});
const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

test("every row is in exactly one line and one layer", () => {
  fc.assert(
    fc.property(fc.array(volume), fc.integer({ min: 2, max: 8 }), (volumes: Volume[], count) => {
      const rows = sum(volumes.map((each) => each.row_count));
      const lines = volumeLines(volumes, volumes, SIGNALS);
      expect(sum(lines.map((line) => line.rows))).toBe(rows);
      expect(lines.every((line) => line.rows === line.before)).toBe(true);
      const layers = layersOf(volumes, stepsOf(0, 10 * STEP, STEP), (each) => each.service, count);
      expect(sum(layers.flatMap((layer) => layer.values))).toBe(rows);
      expect(layers.length).toBeLessThanOrEqual(count);
    }),
  );
});

test("lines are sorted by the selected order", () => {
  const line = (service: string, rows: number, before: number) => ({
    service,
    rows,
    before,
    counts: { logs: rows, spans: 0, metrics: 0 },
  });
  const lines = [line("a", 5, 5), line("b", 9, 20), line("c", 7, 0)];
  const names = (order: "rows" | "growth" | "service") =>
    sortLines(lines, order).map((each) => each.service);
  expect(names("rows")).toEqual(["b", "c", "a"]);
  expect(names("growth")).toEqual(["c", "a", "b"]);
  expect(names("service")).toEqual(["a", "b", "c"]);
});

test("growth is a word where a percentage makes no sense", () => {
  expect(growthText(0, 0)).toBe("–");
  expect(growthText(5, 0)).toBe("new");
  expect(growthText(0, 5)).toBe("gone");
  expect(growthText(100, 100)).toBe("no change");
  expect(growthText(150, 100)).toBe("+50 %");
  expect(growthText(50, 100)).toBe("−50 %");
});

test("layers have distinct colours while there are enough", () => {
  const palette = ["red", "green", "blue"];
  const other = (index: number) => palette[index % 3]!;
  expect([...colorsOf(["a", "b", "c"], () => "green", other).values()].sort()).toEqual([
    "blue",
    "green",
    "red",
  ]);
  expect(colorsOf(["a", "b", "c", "d"], () => "", other).size).toBe(4);
});

test("steps begin at multiples", () => {
  expect(stepsOf(61_000, 181_000, STEP)).toEqual([60_000, 120_000, 180_000]);
});

test("bytes are known only if every signal's size is", () => {
  const known = { stored: 10, sent: 100 };
  const weights = { logs: known, spans: known, metrics: { stored: null, sent: 5 } };
  expect(bytesOf({ logs: 3, spans: 2, metrics: 0 }, weights, "stored")).toBe(50);
  expect(bytesOf({ logs: 3, spans: 2, metrics: 1 }, weights, "stored")).toBe(null);
  expect(bytesOf({ logs: 3, spans: 2, metrics: 1 }, weights, "sent")).toBe(505);
});

test("a gigabyte a day, kept for ten days, costs ten times its price", () => {
  expect(perDay(1e9, 0, 86_400_000)).toBe(1e9);
  expect(perDay(1, 0, 3_600_000)).toBe(24);
  expect(costOf(1e9, 10, 0.5)).toBe(5);
});
