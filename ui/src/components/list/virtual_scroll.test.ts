import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { isStuck, nearHeight, PIXELS_MAX, scrolled, settled, type Sizes } from "./virtual_scroll";

const far: Sizes = { whole: 22_000_000, view: 600 };
const sizes = fc.record({
  whole: fc.integer({ min: 1000, max: 2_000_000_000 }),
  view: fc.integer({ min: 50, max: 900 }),
});

describe("a list that fits", () => {
  test("is scrolled as any", () => {
    const short = { whole: 5000, view: 600 };
    expect(scrolled({ far: 0, near: 0 }, 4400, short)).toEqual({ far: 4400, near: 4400 });
    expect(settled(4400, short)).toEqual({ far: 4400, near: 4400 });
    expect(nearHeight(short)).toBe(5000);
  });
});

describe("a list that is too long", () => {
  test("the wheel moves it by as much as it turns", () => {
    const begin = settled(11_000_000, far);
    const next = scrolled(begin, begin.near + 100, far);
    expect(next.far - begin.far).toBe(100);
  });

  test("a jump goes to the same share, and the ends are reached", () => {
    const nearMax = PIXELS_MAX - far.view;
    expect(scrolled({ far: 0, near: 0 }, nearMax, far).far).toBe(far.whole - far.view);
    expect(scrolled({ far: 9e6, near: 3e6 }, 0, far).far).toBe(0);
    const half = scrolled({ far: 0, near: 0 }, nearMax / 2, far);
    expect(half.far).toBeCloseTo((far.whole - far.view) / 2);
  });

  test("wherever it is settled, it stays there, and can go on", () => {
    fc.assert(
      fc.property(sizes, fc.double({ min: 0, max: 1, noNaN: true }), (given, share) => {
        const wanted = share * (given.whole - given.view);
        const place = settled(wanted, given);
        expect(place.far).toBeCloseTo(wanted, 3);
        expect(place.near).toBeLessThanOrEqual(nearHeight(given) - given.view);
        expect(scrolled(place, place.near, given).far).toBeCloseTo(wanted, 3);
      }),
    );
  });

  test("many turns of the wheel come to the end", () => {
    const end = far.whole - far.view;
    let place = settled(end - 20_000, far);
    for (let turn = 0; turn < 1000 && place.far < end; turn++) {
      const nearMax = PIXELS_MAX - far.view;
      place = scrolled(place, Math.min(nearMax, place.near + 100), far);
      if (isStuck(place, far)) place = settled(place.far, far);
    }
    expect(place.far).toBe(end);
  });
});
