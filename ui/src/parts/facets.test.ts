import fc from "fast-check";
import { expect, test } from "vitest";

import { others, pairOf, partsOf, shownValues, toggled } from "./facets";

const pairs = fc.constantFrom("service=a", "service=b", "route=/", "route=/x=y", "odd=");
const chosen = fc.record({
  filter: fc.uniqueArray(pairs),
  exclude: fc.uniqueArray(pairs),
});

test("a pair is a name and a value, whatever the value is", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[^=]+$/), fc.string(), (name, value) => {
      expect(partsOf(pairOf(name, value))).toEqual({ name, value });
    }),
  );
});

test("what is toggled is there or not, and never both wanted and refused", () => {
  fc.assert(
    fc.property(
      chosen,
      fc.constantFrom("filter" as const, "exclude" as const),
      pairs,
      (was, way, pair) => {
        const now = toggled(was, way, pair);
        const other = way === "filter" ? "exclude" : "filter";
        expect(now[way].includes(pair)).toBe(!was[way].includes(pair));
        expect(now[other].includes(pair)).toBe(false);
        const rest = (list: readonly string[]) => list.filter((each) => each !== pair);
        expect(rest(now[way])).toEqual(rest(was[way]));
        expect(rest(now[other])).toEqual(rest(was[other]));
      },
    ),
  );
});

test("a chosen value is shown also when none is left of it", () => {
  const facet = {
    name: "service",
    values: [
      ["a", 3],
      [null, 1],
    ] as [string | null, number][],
  };
  expect(shownValues(facet, { filter: ["service=a"], exclude: ["service=z", "route=/"] })).toEqual([
    ["a", 3],
    [null, 1],
    ["z", 0],
  ]);
  expect(others(facet, 10)).toBe(6);
  expect(others(facet, 2)).toBe(0);
});
