import { expect, test } from "vitest";

import { patternParts, trendOf } from "./patterns";

test("variable parts are told apart", () => {
  const parts = patternParts("<*> of <*>");
  expect(parts.map((part) => part.text)).toEqual(["<*>", " of ", "<*>"]);
  expect(parts.map((part) => part.isVariable)).toEqual([true, false, true]);
  expect(patternParts("plain")).toEqual([{ text: "plain", isVariable: false }]);
});

test("every step of the range has a count", () => {
  const range = { sinceMs: 60_000, untilMs: 300_000 };
  const trend = { "1970-01-01T00:02:00Z": 7, "1970-01-01T00:04:00Z": 1, "1970-01-01T01:00:00Z": 9 };
  expect(trendOf(trend, range, 60)).toEqual([0, 7, 0, 1]);
});
