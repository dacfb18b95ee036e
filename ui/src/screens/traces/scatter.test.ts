import fc from "fast-check";
import { expect, test } from "vitest";

import type { TraceDot } from "../../lib/api/types.gen";
import {
  selectionOf,
  durationTicks,
  nanoAt,
  nearest,
  positionDots,
  pointOf,
  radiusOf,
  scaleOf,
  timeAt,
  timeTicks,
} from "./scatter";

const AREA = { left: 50, top: 10, width: 600, height: 120 };
const STRETCH = { sinceMs: 1_000_000, untilMs: 4_600_000 };

function dot(timeMs: number, duration_nano: number, more: Partial<TraceDot> = {}): TraceDot {
  return {
    trace_id: "0".repeat(32),
    time: new Date(timeMs).toISOString(),
    duration_nano,
    root_service: "web",
    root_name: "GET /",
    is_failed: false,
    trace_count: 1,
    ...more,
  };
}

const durations = fc.integer({ min: 1, max: 1e13 });
const times = fc.integer({ min: STRETCH.sinceMs, max: STRETCH.untilMs });

test("every dot is inside the area and maps back", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(times, durations), { minLength: 1 }), (given) => {
      const dots = given.map(([timeMs, nano]) => dot(timeMs, nano));
      const scale = scaleOf(dots, STRETCH, AREA);
      for (const [timeMs, nano] of given) {
        const { x, y } = pointOf(scale, timeMs, nano);
        expect(x).toBeGreaterThanOrEqual(AREA.left);
        expect(x).toBeLessThanOrEqual(AREA.left + AREA.width);
        expect(y).toBeGreaterThanOrEqual(AREA.top);
        expect(y).toBeLessThanOrEqual(AREA.top + AREA.height);
        expect(Math.abs(timeAt(scale, x) - timeMs)).toBeLessThan(1);
        if (nano >= scale.minNano) expect(nanoAt(scale, y) / nano).toBeCloseTo(1, 6);
      }
    }),
  );
});

test("there are always ascending duration ticks", () => {
  fc.assert(
    fc.property(durations, durations, (one, other) => {
      const scale = scaleOf([dot(2e6, one), dot(2e6, other)], STRETCH, AREA);
      const ticks = durationTicks(scale);
      expect(ticks.length).toBeGreaterThanOrEqual(1);
      expect(ticks.length).toBeLessThanOrEqual(14);
      expect([...ticks].sort((a, b) => a - b)).toEqual(ticks);
    }),
  );
});

test("time ticks are at round local times", () => {
  expect(timeTicks({ sinceMs: 1, untilMs: 3000 }, 1000)).toEqual([1000, 2000, 3000]);
  expect(timeTicks({ sinceMs: 1, untilMs: 3000 }, 2000, 500)).toEqual([1500]);
});

test("the topmost near dot is picked, and no distant one", () => {
  const dots = [dot(2e6, 1e7, { is_failed: true }), dot(2e6, 1e7), dot(3e6, 1e9)];
  const scale = scaleOf(dots, STRETCH, AREA);
  const all = positionDots(dots, scale);
  const there = pointOf(scale, 2e6, 1e7);
  expect(nearest(all, { x: there.x + 3, y: there.y })?.dot.is_failed).toBe(true);
  expect(nearest(all, { x: there.x + 60, y: there.y })).toBeNull();
});

test("radius grows with traces, within bounds", () => {
  expect(radiusOf(1)).toBeLessThan(radiusOf(10));
  expect(radiusOf(1e9)).toBeLessThan(10);
});

test("a drag selects time, duration or both", () => {
  const scale = scaleOf([dot(2e6, 1e6), dot(3e6, 1e9)], STRETCH, AREA);
  const [from, to] = [pointOf(scale, 3e6, 1e7), pointOf(scale, 2e6, 1e8)];
  const both = selectionOf(scale, from, to);
  expect(both?.range?.sinceMs).toBeCloseTo(2e6, 3);
  expect(both?.range?.untilMs).toBeCloseTo(3e6, 3);
  expect([both?.minMs, both?.maxMs]).toEqual([10, 100]);
  expect(selectionOf(scale, from, { x: to.x, y: from.y })?.minMs).toBeNull();
  expect(selectionOf(scale, from, { x: from.x, y: to.y })?.range).toBeNull();
  expect(selectionOf(scale, from, { x: from.x + 2, y: from.y })).toBeNull();
});
