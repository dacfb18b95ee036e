/** Geometry of the scatter plot. */

import type { TraceDot } from "../../lib/api/types.gen";
import type { TimeRange } from "../../lib/time/range";

export interface Area {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Maps time and duration to a position and back. Durations are logarithmic. */
export interface Scale {
  readonly area: Area;
  readonly range: TimeRange;
  readonly minNano: number;
  readonly maxNano: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

const LEAST_NANO = 1000;

/** Spans all durations and at least one decade, so that a single dot is centered. */
export function scaleOf(dots: readonly TraceDot[], range: TimeRange, area: Area): Scale {
  let [low, high] = [Infinity, 0];
  for (const { duration_nano } of dots) {
    low = Math.min(low, Math.max(LEAST_NANO, duration_nano));
    high = Math.max(high, duration_nano);
  }
  if (low === Infinity) [low, high] = [1e6, 1e9];
  high = Math.max(high, low);
  const missing = Math.max(1.6, Math.sqrt(10 / (high / low)));
  return { area, range, minNano: low / missing, maxNano: high * missing };
}

export function pointOf(scale: Scale, timeMs: number, nano: number): Point {
  const { area, range, minNano, maxNano } = scale;
  const along = (timeMs - range.sinceMs) / (range.untilMs - range.sinceMs);
  const up = Math.log(Math.max(nano, minNano) / minNano) / Math.log(maxNano / minNano);
  return { x: area.left + along * area.width, y: area.top + (1 - up) * area.height };
}

export function timeAt({ area, range }: Scale, x: number): number {
  const along = (x - area.left) / area.width;
  return range.sinceMs + along * (range.untilMs - range.sinceMs);
}

export function nanoAt({ area, minNano, maxNano }: Scale, y: number): number {
  return minNano * (maxNano / minNano) ** (1 - (y - area.top) / area.height);
}

/** Duration ticks: 1, 10, 100; on a short scale also 2 and 5. */
export function durationTicks({ minNano, maxNano }: Scale): number[] {
  const isShort = maxNano / minNano < 300;
  const ticks: number[] = [];
  for (let decade = 10 ** Math.floor(Math.log10(minNano)); decade <= maxNano; decade *= 10) {
    for (const digit of isShort ? [1, 2, 5] : [1]) {
      const tick = Math.round(decade * digit);
      if (tick >= minNano && tick <= maxNano) ticks.push(tick);
    }
  }
  return ticks;
}

/** Time ticks at round local times. */
export function timeTicks({ sinceMs, untilMs }: TimeRange, stepMs: number, shiftMs = 0): number[] {
  const ticks: number[] = [];
  const first = Math.ceil((sinceMs + shiftMs) / stepMs) * stepMs - shiftMs;
  for (let tick = first; tick <= untilMs; tick += stepMs) ticks.push(tick);
  return ticks;
}

const RADIUS = 2.5;
const RADIUS_MAX = 7;

/** Radius grows with the number of traces, up to a limit. */
export function radiusOf(traceCount: number): number {
  return Math.min(RADIUS_MAX, RADIUS + Math.log2(Math.max(1, traceCount)) * 0.8);
}

export interface PositionedDot extends Point {
  readonly dot: TraceDot;
  readonly radius: number;
}

/** In drawing order: failed ones last, on top. */
export function positionDots(dots: readonly TraceDot[], scale: Scale): PositionedDot[] {
  return dots
    .map((dot) => ({
      dot,
      ...pointOf(scale, Date.parse(dot.time), dot.duration_nano),
      radius: radiusOf(dot.trace_count),
    }))
    .sort((one, other) => Number(one.dot.is_failed) - Number(other.dot.is_failed));
}

const NEAR = 6;

/** The nearest dot; of equally near ones the topmost. */
export function nearest(all: readonly PositionedDot[], { x, y }: Point): PositionedDot | null {
  let found: PositionedDot | null = null;
  let least = Infinity;
  for (const each of all) {
    const away = Math.hypot(each.x - x, each.y - y) - each.radius;
    if (away <= NEAR && away <= least) [found, least] = [each, away];
  }
  return found;
}

export interface DragSelection {
  /** Null for the direction without movement. */
  readonly range: TimeRange | null;
  readonly minMs: number | null;
  readonly maxMs: number | null;
}

const DRAG_MIN = 6;
const NS_PER_MS = 1e6;

/** Selection of a drag; null if it was too short. */
export function selectionOf(scale: Scale, from: Point, to: Point): DragSelection | null {
  const isAlong = Math.abs(to.x - from.x) >= DRAG_MIN;
  const isUp = Math.abs(to.y - from.y) >= 2 * DRAG_MIN;
  if (!isAlong && !isUp) return null;
  const [left, right] = [Math.min(from.x, to.x), Math.max(from.x, to.x)];
  const [top, bottom] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
  const digits = (nano: number) => Number((nano / NS_PER_MS).toPrecision(3));
  return {
    range: isAlong ? { sinceMs: timeAt(scale, left), untilMs: timeAt(scale, right) } : null,
    minMs: isUp ? digits(nanoAt(scale, bottom)) : null,
    maxMs: isUp ? digits(nanoAt(scale, top)) : null,
  };
}
