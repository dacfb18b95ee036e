import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";

import { byteSteps, formatterOf, perSecond, unitName } from "./units";

// Preferences need a browser.
vi.mock("../state/prefs.svelte", () => ({ prefs: { isUtc: true } }));

describe("units", () => {
  it.each([
    ["s", 0.0123, "12.3 ms"],
    ["ms", 1500, "1.5 s"],
    ["By", 12_900_000, "12.3 MiB"],
    ["By/s", 2048, "2 KiB/s"],
    ["%", 12.34, "12.3 %"],
    ["1", 0.25, "0.25"],
    ["{order}", 1234, "1,234"],
    ["{order}/s", 0.3, "0.3/s"],
    ["EUR", 5, "5 EUR"],
    ["1/s", 7, "7/s"],
    [null, 3, "3"],
    ["a unit that is much too long", 3, "3"],
    ["toString", 3, "3 toString"],
  ])("%s", (unit, value, wanted) => {
    expect(formatterOf(unit)(value)).toBe(wanted);
  });

  it("shows a dash for null, and zero without a unit", () => {
    expect(formatterOf("s")(null)).toBe("–");
    expect(formatterOf("By/s")(0)).toBe("0");
  });

  it("is displayed without braces", () => {
    expect(unitName("{order}")).toBe("order");
    expect(unitName("1")).toBe("");
    expect(unitName(perSecond("{order}"))).toBe("order/s");
    expect(unitName(perSecond(null))).toBe("/s");
  });

  it("formats any unit and number", () => {
    fc.assert(
      fc.property(fc.option(fc.string()), fc.double({ noNaN: true }), (unit, value) => {
        expect(formatterOf(unit)(value).length).toBeGreaterThan(0);
        expect(typeof unitName(unit)).toBe("string");
      }),
    );
  });
});

it("ticks of sizes are round in KiB and MiB", () => {
  const write = formatterOf("By");
  const labels = (unitBytes: number) => byteSteps(unitBytes).map((step) => write(step * unitBytes));
  expect(labels(1)).toContain("512 KiB");
  expect(labels(1024).slice(0, 12)).toContain("2 MiB");
  expect(byteSteps(1e6)).toEqual([]);
  expect(formatterOf("By/s").unitBytes).toBe(1);
  expect(formatterOf("ms").unitBytes).toBeUndefined();
});
