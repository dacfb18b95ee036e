import fc from "fast-check";
import { expect, test } from "vitest";

import { RowHeights } from "./row_heights";

const COUNT = 60;
const measured = fc.array(fc.tuple(fc.nat(COUNT - 1), fc.integer({ min: 1, max: 300 })));

test("rows of any height do not overlap", () => {
  fc.assert(
    fc.property(measured, (given) => {
      const heights = new RowHeights(22);
      const model = new Array<number>(COUNT).fill(22);
      heights.note(given);
      for (const [number, height] of given) model[number] = height;
      let top = 0;
      for (let number = 0; number < COUNT; number++) {
        expect(heights.top(number)).toBe(top);
        expect(heights.at(top, 0, COUNT)).toBe(number);
        expect(heights.at(top + model[number]! - 0.5, 0, COUNT)).toBe(number);
        top += model[number]!;
      }
      expect(heights.at(top + 1000, 0, COUNT)).toBe(COUNT - 1);
      expect(heights.at(-5, 3, COUNT)).toBe(3);
    }),
  );
});

test("a million rows are fast", () => {
  const heights = new RowHeights(22);
  heights.note([[999_000, 500]]);
  expect(heights.top(999_001)).toBe(999_001 * 22 + 478);
  expect(heights.at(heights.top(999_500), 0, 1_000_000)).toBe(999_500);
});

test("removed rows are forgotten", () => {
  const heights = new RowHeights(10);
  heights.note([
    [1, 30],
    [5, 20],
  ]);
  heights.forgetBefore(3);
  expect(heights.top(9) - heights.top(3)).toBe(6 * 10 + 10);
  heights.forget();
  expect(heights.top(9)).toBe(90);
});
