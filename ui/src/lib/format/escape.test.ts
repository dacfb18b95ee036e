import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { truncate, escapeText, escapeLines, stripAnsi } from "./escape";

const dangerous = fc.constantFrom(
  ..."\0\x07\x08\x1b\x7f\x85\x9b\u00ad\u061c\u200b\u200e\u202a\u202e\u2028\u2066\u2069\ufeff",
  "\u{e0041}",
  "\ud800",
  "\udfff",
);
const texts = fc
  .array(fc.oneof(dangerous, fc.string({ unit: "grapheme" }), fc.string({ unit: "binary" })))
  .map((parts) => parts.join(""));
const UNSEEN =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/u;

describe("escapeText", () => {
  test.each([
    ["plain text, with — dashes, ümläuts, 漢字 and עברית", undefined],
    ["a\0b", "a␀b"],
    ["two\nlines\tand", "two↵lines⇥and"],
    ["\x1b[31mred", "␛[31mred"],
    ["evil\u202egpj.exe", "evil⟨U+202E⟩gpj.exe"],
    ["pay\u200bpal", "pay⟨U+200B⟩pal"],
    ["pay\u200dpal", "pay⟨U+200D⟩pal"],
    ["\x7f\x85", "␡⟨U+0085⟩"],
    ["half \ud83d of a pair", "half ⟨U+D83D⟩ of a pair"],
    ["tag \u{e0041}", "tag ⟨U+E0041⟩"],
    ["👩‍👧‍👦 and 👍🏽 and 🏳️‍🌈", undefined],
  ])("%j", (text, shown) => {
    expect(escapeText(text)).toBe(shown ?? text);
  });

  test("no invisible character is left, and escaping is idempotent", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const shown = escapeText(text);
        expect(shown).not.toMatch(UNSEEN);
        expect(escapeText(shown)).toBe(shown);
        const lines = escapeLines(text);
        expect(lines.replace(/[\n\t]/g, "")).not.toMatch(UNSEEN);
        expect(escapeLines(lines)).toBe(lines);
      }),
    );
  });

  test("escapeLines keeps line breaks and tabs", () => {
    expect(escapeLines("a\r\n\tb\rc")).toBe("a\n\tb␍c");
  });
});

describe("stripAnsi", () => {
  test.each([
    ["\x1b[31;1merror\x1b[0m: no", "error: no"],
    ["\x1b]8;;http://evil.example\x07link\x1b]8;;\x07", "link"],
    ["\x1b]0;title\x1b\\x", "x"],
    ["\x9b31mred", "red"],
    ["cut \x1b[31", "cut \x1b[31"],
    ["no \x1b]8;;end", "no \x1b]8;;end"],
  ])("%j", (text, left) => {
    expect(stripAnsi(text)).toBe(left);
  });

  test("a megabyte of broken codes is fast", () => {
    const text = "\x1b]".repeat(500_000) + "\x1b[".repeat(200_000) + "1;".repeat(100_000);
    expect(stripAnsi(text).length).toBeLessThanOrEqual(text.length);
  });
});

test("truncation never splits a surrogate pair", () => {
  expect(truncate("abc", 3)).toBe("abc");
  expect(truncate("abcd", 3)).toBe("abc…");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(20), (text, length) => {
      expect(truncate(text, length).isWellFormed()).toBe(true);
    }),
  );
});
