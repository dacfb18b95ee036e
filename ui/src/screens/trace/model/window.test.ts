import fc from "fast-check";
import { expect, test } from "vitest";

import {
  clampWindow,
  isFullWindow,
  panWindow,
  ticks,
  type Window,
  windowOf,
  zoomWindow,
} from "./window";

const totals = fc.integer({ min: 1, max: 1e13 });
const cases = fc
  .tuple(
    totals,
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.double({ min: 0, max: 1, noNaN: true }),
  )
  .map(([total, one, other]) => {
    const [low, high] = [Math.min(one, other) * total, Math.max(one, other) * total];
    return { total, window: clampWindow({ low, high }, total) };
  });

function expectInside(window: Window, total: number) {
  expect(window.low).toBeGreaterThanOrEqual(0);
  expect(window.high).toBeLessThanOrEqual(total * (1 + 1e-12));
  expect(window.high).toBeGreaterThan(window.low);
}

test("any pan and zoom stays inside the trace", () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ by: fc.double({ min: -3, max: 3, noNaN: true }) }),
      fc.record({
        factor: fc.double({ min: 0.01, max: 100, noNaN: true }),
        at: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    ),
  );
  fc.assert(
    fc.property(cases, steps, ({ total, window }, all) => {
      let now = window;
      for (const step of all) {
        now =
          "by" in step
            ? panWindow(now, step.by, total)
            : zoomWindow(now, step.factor, step.at, total);
        expectInside(now, total);
      }
    }),
  );
});

test("zooming in keeps the moment under the pointer", () => {
  fc.assert(
    fc.property(
      cases,
      fc.double({ min: 0.2, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      ({ total, window }, factor, share) => {
        const before = window.low + (window.high - window.low) * share;
        const now = zoomWindow(window, factor, share, total);
        const after = now.low + (now.high - now.low) * share;
        expect(Math.abs(after - before)).toBeLessThanOrEqual(total * 1e-9 + 1e-6);
      },
    ),
  );
});

test("zooming out reaches the whole trace", () => {
  fc.assert(
    fc.property(cases, ({ total, window }) => {
      expect(isFullWindow(zoomWindow(window, 1e15, 0.3, total), total)).toBe(true);
    }),
  );
});

test("a window from the address is clamped, and invalid ones mean all", () => {
  expect(windowOf(null, null, 1000)).toEqual({ low: 0, high: 1000 });
  expect(windowOf(200, 700, 1000)).toEqual({ low: 200, high: 700 });
  expect(windowOf(700, 200, 1000)).toEqual({ low: 0, high: 1000 });
  expect(windowOf(-500, 200, 1000)).toEqual({ low: 0, high: 700 });
});

test("ticks are inside, evenly spaced and few", () => {
  fc.assert(
    fc.property(cases, fc.integer({ min: 1, max: 30 }), ({ window }, most) => {
      const found = ticks(window, most);
      expect(found.length).toBeLessThanOrEqual(most + 1);
      for (const at of found) {
        expect(at).toBeGreaterThanOrEqual(window.low - 1e-6);
        expect(at).toBeLessThanOrEqual(window.high + 1e-6);
      }
    }),
  );
});
