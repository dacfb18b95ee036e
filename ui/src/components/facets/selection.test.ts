import fc from "fast-check";
import { describe, expect, test } from "vitest";

import {
  type Filters,
  hasFilter,
  otherCount,
  pairOf,
  splitPair,
  visibleValues,
  toggleFilter,
  type FilterMode,
  withoutFiltersOn,
} from "./selection";

const nothing: Filters = { q: "", is: [], not: [] };
const pairs = fc.constantFrom("service=a", "service=b", "route=/", "route=/x=y", "odd=");
const chosen = fc.record({
  q: fc.constantFrom("", "timeout", "a OR b", "-service:*", "route:* timeout"),
  is: fc.uniqueArray(pairs),
  not: fc.uniqueArray(pairs),
});
const names = fc.constantFrom("service", "route", "odd", "with=sign");
const values = fc.constantFrom("a", "/", "", 'say "x"', null);
const ways = fc.constantFrom<FilterMode>("is", "not");

test("a pair splits into name and value, whatever the value", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[^=]+$/), fc.string(), (name, value) => {
      expect(splitPair(pairOf(name, value))).toEqual({ name, value });
    }),
  );
});

describe("toggleFilter", () => {
  test("a value is included, excluded, then unfiltered", () => {
    const wanted = toggleFilter(nothing, "service_name", "cart", "is");
    expect(wanted.is).toEqual(["service_name=cart"]);
    const refused = toggleFilter(wanted, "service_name", "cart", "not");
    expect(refused).toEqual({ q: "", is: [], not: ["service_name=cart"] });
    expect(toggleFilter(refused, "service_name", "cart", "not")).toEqual(nothing);
  });

  test("values may contain anything; a name with = uses the search box", () => {
    expect(toggleFilter(nothing, "a", "b=c\n", "is").is).toEqual(["a=b=c\n"]);
    const refused = toggleFilter(nothing, "a=b", 'say "x"', "not");
    expect(refused.q).toBe('-"a=b":"say \\"x\\""');
    expect(toggleFilter(refused, "a=b", 'say "x"', "not")).toEqual(nothing);
  });

  test("a missing field uses the search box", () => {
    const wanted = toggleFilter({ ...nothing, q: "timeout" }, "http.route", null, "is");
    expect(wanted).toEqual({ ...nothing, q: "timeout -http.route:*" });
    const refused = toggleFilter(wanted, "http.route", null, "not");
    expect(refused).toEqual({ ...nothing, q: "timeout http.route:*" });
    expect(toggleFilter(refused, "http.route", null, "not").q).toBe("timeout");
  });

  test("a field cannot be set and missing at once", () => {
    const wanted = { ...nothing, is: ["service=a", "route=/"], not: ["service=b"] };
    const unset = toggleFilter(wanted, "service", null, "is");
    expect(unset).toEqual({ q: "-service:*", is: ["route=/"], not: ["service=b"] });
    expect(toggleFilter(unset, "service", "a", "is")).toEqual({
      q: "",
      is: ["route=/", "service=a"],
      not: ["service=b"],
    });
  });

  test("a toggled filter is on or off, and never both included and excluded", () => {
    fc.assert(
      fc.property(chosen, names, values, ways, (was, name, value, way) => {
        const now = toggleFilter(was, name, value, way);
        const other = way === "is" ? "not" : "is";
        expect(hasFilter(now, name, value, way)).toBe(!hasFilter(was, name, value, way));
        expect(hasFilter(now, name, value, other)).toBe(false);
        const again = toggleFilter(now, name, value, way);
        expect(hasFilter(again, name, value, way)).toBe(hasFilter(was, name, value, way));
      }),
    );
  });

  test("other filters stay", () => {
    fc.assert(
      fc.property(chosen, pairs, ways, (was, pair, way) => {
        const { name, value } = splitPair(pair);
        const now = toggleFilter(was, name, value, way);
        const other = way === "is" ? "not" : "is";
        const rest = (list: readonly string[]) => list.filter((each) => each !== pair);
        expect(now[way].includes(pair)).toBe(!was[way].includes(pair));
        expect(rest(now[way])).toEqual(rest(was[way]));
        expect(rest(now[other])).toEqual(rest(was[other]));
      }),
    );
  });
});

test("removing a name's filters keeps the others", () => {
  const looked = { ...nothing, is: ["a=1", "b=2", "a=3"], not: ["a=4"] };
  expect(withoutFiltersOn(looked, "a")).toEqual({ q: "", is: ["b=2"], not: ["a=4"] });
  expect(withoutFiltersOn({ ...nothing, q: "x -a:* -b:*" }, "a").q).toBe("x -b:*");
});

describe("visible values", () => {
  const facet = {
    name: "service",
    values: [
      ["a", 3],
      [null, 1],
    ] as [string | null, number][],
    total: 4,
  };

  test("a selected value is listed without matching records", () => {
    const refused = { ...nothing, is: ["service=a"], not: ["service=z", "route=/"] };
    expect(visibleValues(facet, refused)).toEqual([
      ["a", 3],
      [null, 1],
      ["z", 0],
    ]);
    const unset = { name: "service", values: [], total: 0 };
    expect(visibleValues(unset, { ...nothing, q: "service:*" })).toEqual([[null, 0]]);
  });

  test("repeated values of an address are listed once", () => {
    const odd = { ...nothing, is: ["service=z", "service=z"], not: ["service=z"] };
    expect(visibleValues(facet, odd).map(([value]) => value)).toEqual(["a", null, "z"]);
  });

  test("the count of an unlisted selected value is unknown", () => {
    const wanted = { ...nothing, is: ["service=z"] };
    expect(visibleValues(facet, wanted).at(-1)).toEqual(["z", 0]);
    expect(visibleValues({ ...facet, total: 10 }, wanted).at(-1)).toEqual(["z", null]);
  });

  test("unlisted values are counted as other", () => {
    expect(otherCount({ ...facet, total: 10 })).toBe(6);
    expect(otherCount({ ...facet, total: 2 })).toBe(0);
  });
});
