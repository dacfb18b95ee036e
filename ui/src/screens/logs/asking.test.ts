import { describe, expect, test } from "vitest";

import { type Looked, toggledFilter, withoutName } from "./asking";

const nothing: Looked = { q: "", is: [], not: [] };
const cart = { name: "service_name", value: "cart" };

describe("toggledFilter", () => {
  test("a value is wanted, then not, then neither", () => {
    const wanted = toggledFilter(nothing, cart, "is");
    expect(wanted.is).toEqual(["service_name=cart"]);
    const unwanted = toggledFilter(wanted, cart, "not");
    expect(unwanted).toEqual({ q: "", is: [], not: ["service_name=cart"] });
    expect(toggledFilter(unwanted, cart, "not")).toEqual(nothing);
  });

  test("a value may have anything in it; a name with = goes to the box", () => {
    expect(toggledFilter(nothing, { name: "a", value: "b=c\n" }, "is").is).toEqual(["a=b=c\n"]);
    expect(toggledFilter(nothing, { name: "a=b", value: 'say "x"' }, "not").q).toBe(
      '-"a=b":"say \\"x\\""',
    );
  });
});

test("without a name its other filters stay", () => {
  const looked = { ...nothing, is: ["a=1", "b=2", "a=3"], not: ["a=4"] };
  expect(withoutName(looked, "a")).toEqual({ q: "", is: ["b=2"], not: ["a=4"] });
});
