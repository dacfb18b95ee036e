import fc from "fast-check";
import { expect, test } from "vitest";

import { compared, pageOf } from "./cursor";

const places = fc.uniqueArray(
  fc.tuple(fc.integer({ min: -5, max: 5 }), fc.nat(2), fc.nat(3), fc.nat(3)),
  { selector: (place) => place.join("-"), minLength: 1, maxLength: 60 },
);

test("every record is found on its page", () => {
  fc.assert(
    fc.property(places, fc.constantFrom("newest" as const, "oldest" as const), (given, order) => {
      const cursors = given.map((place) => place.join("-")).sort((a, b) => compared(a, b, order));
      const every = 4;
      const ends = cursors.filter((_, i) => i % every === every - 1 && i < cursors.length - 1);
      cursors.forEach((cursor, i) => {
        expect(pageOf(cursor, ends, order)).toBe(Math.floor(i / every));
      });
    }),
  );
});

test("newest order puts the latest time first", () => {
  expect(compared("2-0-0-0", "1-9-9-9", "newest")).toBeLessThan(0);
  expect(compared("2-0-0-1", "2-0-0-2", "oldest")).toBeLessThan(0);
});
