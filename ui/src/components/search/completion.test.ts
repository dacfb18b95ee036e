import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { partialTermAt, complete, valueWord } from "./completion";

const quotes = fc
  .array(fc.constantFrom("\\", '"', "a", " "), { minLength: 1 })
  .map((all) => all.join(""));

/** `|` is the caret. */
function at(text: string) {
  const caret = text.indexOf("|");
  return partialTermAt(text.replace("|", ""), caret);
}

describe("partialTermAt", () => {
  test.each([
    ["|", "field", "", ""],
    ["ser|", "field", "", "ser"],
    ["timeout ser|", "field", "", "ser"],
    ["-ser|", "field", "", "ser"],
    ["(a OR ser|)", "field", "", "ser"],
    ["service_name:|", "value", "service_name", ""],
    ["service_name:ch|", "value", "service_name", "ch"],
    ["-service_name:ch| x", "value", "service_name", "ch"],
    ['service_name:"my sh|', "value", "service_name", "my sh"],
    ['"odd name":x|', "value", "odd name", "x"],
    ["http.status_code:>=5|", "value", "http.status_code", "5"],
    ["service.name=ch|", "value", "service.name", "ch"],
    ["service!=ch|", "value", "service", "ch"],
    ["duration>=5|", "value", "duration", "5"],
  ])("%s", (text, kind, field, typed) => {
    expect(at(text)).toMatchObject({ kind, field, typed });
  });

  test("any caret position has a term", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(30), (text, given) => {
        const caret = Math.min(given, text.length);
        const partial = partialTermAt(text, caret);
        expect(partial.begin).toBeLessThanOrEqual(caret);
        expect(partial.end).toBeGreaterThanOrEqual(caret);
        expect(partial.end).toBeLessThanOrEqual(text.length);
      }),
    );
  });
});

describe("complete", () => {
  test.each([
    ["ser|", "service_name", "service_name:|"],
    ["se|r:x", "service_name", "service_name:|x"],
    ["se|r=x", "service_name", "service_name:|x"],
    ["x -service_name:ch| y", "checkout", "x -service_name:checkout |y"],
    ["service_name:|", "my shop", 'service_name:"my shop" |'],
    ['service_name:"my|', 'say "hi"', 'service_name:"say \\"hi\\"" |'],
  ])("%s with %s", (text, choice, expected) => {
    const { text: written, caret } = complete(text.replace("|", ""), at(text), choice);
    expect(`${written.slice(0, caret)}|${written.slice(caret)}`).toBe(expected);
  });

  test("a quoted word parses back", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ minLength: 1 }), quotes), (value) => {
        const text = `field:${valueWord(value)}`;
        expect(partialTermAt(text, text.length)).toMatchObject({ field: "field", typed: value });
      }),
    );
  });
});
