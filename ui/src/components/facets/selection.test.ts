import fc from "fast-check";
import { describe, expect, test } from "vitest";

import {
  type Chosen,
  isChosen,
  others,
  pairOf,
  partsOf,
  shownValues,
  toggled,
  type Way,
  withoutName,
} from "./selection";

const nothing: Chosen = { q: "", is: [], not: [] };
const pairs = fc.constantFrom("service=a", "service=b", "route=/", "route=/x=y", "odd=");
const chosen = fc.record({
  q: fc.constantFrom("", "timeout", "a OR b", "-service:*", "route:* timeout"),
  is: fc.uniqueArray(pairs),
  not: fc.uniqueArray(pairs),
});
const names = fc.constantFrom("service", "route", "odd", "with=sign");
const values = fc.constantFrom("a", "/", "", 'say "x"', null);
const ways = fc.constantFrom<Way>("is", "not");

test("a pair is a name and a value, whatever the value is", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[^=]+$/), fc.string(), (name, value) => {
      expect(partsOf(pairOf(name, value))).toEqual({ name, value });
    }),
  );
});

describe("toggled", () => {
  test("a value is wanted, then not, then neither", () => {
    const wanted = toggled(nothing, "service_name", "cart", "is");
    expect(wanted.is).toEqual(["service_name=cart"]);
    const refused = toggled(wanted, "service_name", "cart", "not");
    expect(refused).toEqual({ q: "", is: [], not: ["service_name=cart"] });
    expect(toggled(refused, "service_name", "cart", "not")).toEqual(nothing);
  });

  test("a value may have anything in it; a name with = goes to the box", () => {
    expect(toggled(nothing, "a", "b=c\n", "is").is).toEqual(["a=b=c\n"]);
    const refused = toggled(nothing, "a=b", 'say "x"', "not");
    expect(refused.q).toBe('-"a=b":"say \\"x\\""');
    expect(toggled(refused, "a=b", 'say "x"', "not")).toEqual(nothing);
  });

  test("a field that is not set goes to the box", () => {
    const wanted = toggled({ ...nothing, q: "timeout" }, "http.route", null, "is");
    expect(wanted).toEqual({ ...nothing, q: "timeout -http.route:*" });
    const refused = toggled(wanted, "http.route", null, "not");
    expect(refused).toEqual({ ...nothing, q: "timeout http.route:*" });
    expect(toggled(refused, "http.route", null, "not").q).toBe("timeout");
  });

  test("nothing has a value and none", () => {
    const wanted = { ...nothing, is: ["service=a", "route=/"], not: ["service=b"] };
    const unset = toggled(wanted, "service", null, "is");
    expect(unset).toEqual({ q: "-service:*", is: ["route=/"], not: ["service=b"] });
    expect(toggled(unset, "service", "a", "is")).toEqual({
      q: "",
      is: ["route=/", "service=a"],
      not: ["service=b"],
    });
  });

  test("what is toggled is there or not, and never both wanted and refused", () => {
    fc.assert(
      fc.property(chosen, names, values, ways, (was, name, value, way) => {
        const now = toggled(was, name, value, way);
        const other = way === "is" ? "not" : "is";
        expect(isChosen(now, name, value, way)).toBe(!isChosen(was, name, value, way));
        expect(isChosen(now, name, value, other)).toBe(false);
        const again = toggled(now, name, value, way);
        expect(isChosen(again, name, value, way)).toBe(isChosen(was, name, value, way));
      }),
    );
  });

  test("what else was chosen stays", () => {
    fc.assert(
      fc.property(chosen, pairs, ways, (was, pair, way) => {
        const { name, value } = partsOf(pair);
        const now = toggled(was, name, value, way);
        const other = way === "is" ? "not" : "is";
        const rest = (list: readonly string[]) => list.filter((each) => each !== pair);
        expect(now[way].includes(pair)).toBe(!was[way].includes(pair));
        expect(rest(now[way])).toEqual(rest(was[way]));
        expect(rest(now[other])).toEqual(rest(was[other]));
      }),
    );
  });
});

test("without a name its other filters stay", () => {
  const looked = { ...nothing, is: ["a=1", "b=2", "a=3"], not: ["a=4"] };
  expect(withoutName(looked, "a")).toEqual({ q: "", is: ["b=2"], not: ["a=4"] });
  expect(withoutName({ ...nothing, q: "x -a:* -b:*" }, "a").q).toBe("x -b:*");
});

describe("what is shown", () => {
  const facet = {
    name: "service",
    values: [
      ["a", 3],
      [null, 1],
    ] as [string | null, number][],
    total: 4,
  };

  test("a chosen value is shown also when none is left of it", () => {
    const refused = { ...nothing, is: ["service=a"], not: ["service=z", "route=/"] };
    expect(shownValues(facet, refused)).toEqual([
      ["a", 3],
      [null, 1],
      ["z", 0],
    ]);
    const unset = { name: "service", values: [], total: 0 };
    expect(shownValues(unset, { ...nothing, q: "service:*" })).toEqual([[null, 0]]);
  });

  test("each is shown once, whatever an address says", () => {
    const odd = { ...nothing, is: ["service=z", "service=z"], not: ["service=z"] };
    expect(shownValues(facet, odd).map(([value]) => value)).toEqual(["a", null, "z"]);
  });

  test("how many have a wanted value that is not listed is not known", () => {
    const wanted = { ...nothing, is: ["service=z"] };
    expect(shownValues(facet, wanted).at(-1)).toEqual(["z", 0]);
    expect(shownValues({ ...facet, total: 10 }, wanted).at(-1)).toEqual(["z", null]);
  });

  test("all that are not listed are others", () => {
    expect(others({ ...facet, total: 10 })).toBe(6);
    expect(others({ ...facet, total: 2 })).toBe(0);
  });
});
