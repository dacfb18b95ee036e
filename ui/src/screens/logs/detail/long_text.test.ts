import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { CHARACTERS_VISIBLE, truncateText, LINES_VISIBLE, prettyJson } from "./long_text";

describe("prettyJson", () => {
  test("matches the format of JSON.stringify", () => {
    fc.assert(
      fc.property(fc.oneof(fc.object(), fc.array(fc.json())), (value) => {
        const plain = JSON.parse(JSON.stringify(value)) as unknown;
        expect(prettyJson(JSON.stringify(plain))).toBe(JSON.stringify(plain, null, 2));
        expect(prettyJson(JSON.stringify(plain, null, 1))).toBe(JSON.stringify(plain, null, 2));
      }),
    );
  });

  test("numbers stay as written", () => {
    expect(prettyJson('{"a":12345678901234567890,"b":1.50}')).toBe(
      '{\n  "a": 12345678901234567890,\n  "b": 1.50\n}',
    );
  });

  test.each(["", "text", "{not json}", "[1,", "7"])("%j is none", (text) => {
    expect(prettyJson(text)).toBeNull();
  });
});

describe("truncateText", () => {
  test("a long stack trace shows its first lines", () => {
    const lines = Array.from({ length: 40 }, (_, i) => `at frame ${i}`);
    const { text, hidden } = truncateText(lines.join("\n"));
    expect(text.split("\n")).toHaveLength(LINES_VISIBLE);
    expect(hidden).toBe(`${40 - LINES_VISIBLE} more lines`);
  });

  test("short texts are whole, and truncated ones are prefixes", () => {
    expect(truncateText("a\nb")).toEqual({ text: "a\nb", hidden: null });
    fc.assert(
      fc.property(fc.string({ maxLength: 50 }), fc.nat(400), (part, times) => {
        const whole = `${part}\n`.repeat(times);
        const { text, hidden } = truncateText(whole);
        expect(whole.startsWith(text)).toBe(true);
        expect(hidden === null).toBe(text === whole);
        expect(text.length).toBeLessThanOrEqual(CHARACTERS_VISIBLE);
      }),
    );
  });
});
