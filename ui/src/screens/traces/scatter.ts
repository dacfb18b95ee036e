/** Durations over time as dots: where they are drawn, and which of them is meant. */

import type { TraceDot } from "../../lib/api/types.gen";
import type { TimeRange } from "../../lib/time/range";

export interface Area {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** From time and duration to a place, and back. Durations are on a logarithmic scale. */
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

/** Around all durations, at least one decade, so that a single dot is in the middle. */
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

/** Durations to write at the side: 1, 10, 100; for a short scale also 2 and 5. */
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

/** Times to write below, at whole steps as the clock shows them. */
export function timeTicks({ sinceMs, untilMs }: TimeRange, stepMs: number, shiftMs = 0): number[] {
  const ticks: number[] = [];
  const first = Math.ceil((sinceMs + shiftMs) / stepMs) * stepMs - shiftMs;
  for (let tick = first; tick <= untilMs; tick += stepMs) ticks.push(tick);
  return ticks;
}

const RADIUS = 2.5;
const RADIUS_MAX = 7;

/** More traces are a larger dot, but never one that hides the others. */
export function radiusOf(traceCount: number): number {
  return Math.min(RADIUS_MAX, RADIUS + Math.log2(Math.max(1, traceCount)) * 0.8);
}

export interface PositionedDot extends Point {
  readonly dot: TraceDot;
  readonly radius: number;
}

/** In the order they are drawn in: failed ones last, on top of all others. */
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

/** The dot that somebody points at: the nearest, and of two as near the one that is on top. */
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
  /** Null where the drag does not say: it went up or along only. */
  readonly range: TimeRange | null;
  readonly minMs: number | null;
  readonly maxMs: number | null;
}

const DRAG_MIN = 6;
const NS_PER_MS = 1e6;

/** What a drag from here to there means; null when it was none. */
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
