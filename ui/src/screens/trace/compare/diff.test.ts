import fc from "fast-check";
import { expect, test } from "vitest";

import { outlineOf, traces } from "../model/random_traces";
import { toSpans } from "../model/spans";
import { countChanges, diffTraces, selectRows } from "./diff";

test("a trace equals itself", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      const rows = diffTraces(spans, spans);
      expect(rows.map((row) => row.current)).toEqual([...Array(spans.count).keys()]);
      expect(
        rows.every((row) => row.change === "same" && row.depth === spans.depth[row.current]),
      ).toBe(true);
    }),
  );
});

test("every span of both traces is there once, below its parent, and the opposite is symmetric", () => {
  fc.assert(
    fc.property(traces, traces, (one, other) => {
      const rows = diffTraces(one, other);
      const indices = (side: "current" | "baseline") =>
        rows.map((row) => row[side]).filter((i) => i >= 0);
      expect(indices("current").toSorted((a, b) => a - b)).toEqual([...Array(one.count).keys()]);
      expect(indices("baseline").toSorted((a, b) => a - b)).toEqual([...Array(other.count).keys()]);
      const path: (typeof rows)[number][] = [];
      for (const row of rows) {
        path.length = row.depth;
        const parent = path.at(-1);
        if (row.current >= 0) expect(one.parent[row.current]).toBe(parent?.current ?? -1);
        if (row.baseline >= 0) expect(other.parent[row.baseline]).toBe(parent?.baseline ?? -1);
        path.push(row);
      }
      const [ahead, back] = [countChanges(rows), countChanges(diffTraces(other, one))];
      expect([ahead.added, ahead.removed]).toEqual([back.removed, back.added]);
    }),
  );
});

test("changes are named, and sorted by the self time that they cost", () => {
  const baseline = toSpans(
    outlineOf([
      { length: 1000, name: 0 },
      { length: 100, name: 1 },
      { length: 400, name: 2, up: 1 },
      { length: 50, name: 3, up: 1 },
    ]),
  );
  const current = toSpans(
    outlineOf([
      { length: 1010, name: 0 },
      { length: 300, name: 1 },
      { length: 100, name: 2, up: 1 },
      { length: 30, name: 2, up: 1 },
    ]),
  );
  const rows = diffTraces(current, baseline);
  expect(rows.map(({ name, change, difference }) => [name, change, difference])).toEqual([
    ["buy", "same", 10],
    ["pay", "slower", 200],
    ["SELECT orders", "faster", -300],
    ["send", "removed", -50],
    ["SELECT orders", "added", 30],
  ]);
  expect(selectRows(rows, "changed", true).map(({ change }) => change)).toEqual([
    "faster",
    "slower",
    "removed",
    "added",
  ]);
});

test("a chain of many thousand spans is compared", () => {
  const deep = toSpans(outlineOf(Array.from({ length: 20_000 }, () => ({ length: 10 }))));
  expect(diffTraces(deep, deep)).toHaveLength(20_000);
});
