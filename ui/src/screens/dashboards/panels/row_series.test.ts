import { describe, expect, it, vi } from "vitest";

import { hasTime, rowLines, rowValues, reduceLines, topOf } from "./row_series";
import { sparkPath } from "./spark_path";

vi.mock("../../../lib/state/prefs.svelte", () => ({ prefs: { isUtc: true } }));

const OVER_TIME = {
  columns: ["at", "service", "n", "bad"],
  types: ["timestamp[ns, tz=UTC]", "string", "int64", "double"],
  rows: [
    ["2026-01-01T00:01:00Z", "a", 2, 0.5],
    ["2026-01-01T00:00:00Z", "a", 1, "NaN"],
    ["2026-01-01T00:01:00Z", null, 3, null],
  ],
};

describe("rows of SQL", () => {
  it("are lines over time, one per text and number column", () => {
    expect(hasTime(OVER_TIME)).toBe(true);
    const { timesMs, lines, stepS } = rowLines(OVER_TIME);
    expect(timesMs.map((ms) => new Date(ms).getUTCMinutes())).toEqual([0, 1]);
    expect(stepS).toBe(60);
    expect(lines.map(({ name, values }) => [name, ...values])).toEqual([
      ["n a", 1, 2],
      ["bad a", null, 0.5],
      ["n", null, 3],
      ["bad", null, null],
    ]);
  });

  it("become named values", () => {
    const answer = {
      columns: ["a", "n", "b"],
      types: ["string", "int64", "string"],
      rows: [
        ["x", 1, "y"],
        ["z", null, ""],
      ],
    };
    expect(rowValues(answer)).toEqual([{ name: "x, y", value: 1 }]);
    expect(topOf([...rowValues(answer), { name: "more", value: 5 }], 1)[0]?.name).toBe("more");
  });

  it("report missing columns", () => {
    expect(() => rowLines({ columns: ["a"], types: ["string"], rows: [] })).toThrow("time");
    expect(() => rowValues({ columns: ["a"], types: ["string"], rows: [] })).toThrow("number");
  });

  it("are reduced to one number each", () => {
    const line = { name: "a", labels: {}, aggregate: "", values: [1, null, 3] };
    const value = (how: "sum" | "last" | "avg") => reduceLines([line], how)[0]?.value;
    expect([value("sum"), value("last"), value("avg")]).toEqual([4, 3, 2]);
    expect(reduceLines([{ ...line, values: [null] }], "sum")).toEqual([]);
  });

  it("become sparklines with gaps", () => {
    expect(sparkPath([0, 1, null, 1], 30, 10)).toBe("M0.0 10.0L10.0 0.0M30.0 0.0");
    expect(sparkPath([], 10, 10)).toBe("");
  });
});
