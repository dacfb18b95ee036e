import fc from "fast-check";
import { describe, expect, test } from "vitest";

import {
  isStuck,
  elementHeight,
  PIXELS_MAX,
  afterScroll,
  alignedTo,
  type Sizes,
} from "./virtual_scroll";

const offset: Sizes = { whole: 22_000_000, view: 600 };
const sizes = fc.record({
  whole: fc.integer({ min: 1000, max: 2_000_000_000 }),
  view: fc.integer({ min: 50, max: 900 }),
});

describe("a list that fits", () => {
  test("scrolls natively", () => {
    const short = { whole: 5000, view: 600 };
    expect(afterScroll({ offset: 0, scrollTop: 0 }, 4400, short)).toEqual({
      offset: 4400,
      scrollTop: 4400,
    });
    expect(alignedTo(4400, short)).toEqual({ offset: 4400, scrollTop: 4400 });
    expect(elementHeight(short)).toBe(5000);
  });
});

describe("a list that is too long", () => {
  test("the wheel moves by its delta", () => {
    const begin = alignedTo(11_000_000, offset);
    const next = afterScroll(begin, begin.scrollTop + 100, offset);
    expect(next.offset - begin.offset).toBe(100);
  });

  test("a jump goes to the same share and reaches both ends", () => {
    const scrollTopMax = PIXELS_MAX - offset.view;
    expect(afterScroll({ offset: 0, scrollTop: 0 }, scrollTopMax, offset).offset).toBe(
      offset.whole - offset.view,
    );
    expect(afterScroll({ offset: 9e6, scrollTop: 3e6 }, 0, offset).offset).toBe(0);
    const half = afterScroll({ offset: 0, scrollTop: 0 }, scrollTopMax / 2, offset);
    expect(half.offset).toBeCloseTo((offset.whole - offset.view) / 2);
  });

  test("an aligned position is stable and can scroll on", () => {
    fc.assert(
      fc.property(sizes, fc.double({ min: 0, max: 1, noNaN: true }), (given, share) => {
        const wanted = share * (given.whole - given.view);
        const position = alignedTo(wanted, given);
        expect(position.offset).toBeCloseTo(wanted, 3);
        expect(position.scrollTop).toBeLessThanOrEqual(elementHeight(given) - given.view);
        expect(afterScroll(position, position.scrollTop, given).offset).toBeCloseTo(wanted, 3);
      }),
    );
  });

  test("repeated wheel events reach the end", () => {
    const end = offset.whole - offset.view;
    let position = alignedTo(end - 20_000, offset);
    for (let turn = 0; turn < 1000 && position.offset < end; turn++) {
      const scrollTopMax = PIXELS_MAX - offset.view;
      position = afterScroll(position, Math.min(scrollTopMax, position.scrollTop + 100), offset);
      if (isStuck(position, offset)) position = alignedTo(position.offset, offset);
    }
    expect(position.offset).toBe(end);
  });
});
