/** Time ranges, relative or absolute. */

import { codec, flag, type StateOf, text } from "../router/codec";

/** Query parameters of a range. An empty `to` means now; `play` refreshes automatically. */
export const rangeFields = { from: text("1h"), to: text(), play: flag() };
export const rangeCodec = codec(rangeFields);
export type RangeState = StateOf<typeof rangeFields>;

/** A time range in milliseconds since 1970. */
export interface TimeRange {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Presets of the time picker; other values can be typed. */
export const PRESETS = [
  ["5m", "5 minutes"],
  ["15m", "15 minutes"],
  ["1h", "hour"],
  ["3h", "3 hours"],
  ["6h", "6 hours"],
  ["24h", "24 hours"],
  ["2d", "2 days"],
  ["7d", "7 days"],
  ["30d", "30 days"],
] as const;

const AGO = /^(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw])$/;
const HOUR_MS = 3_600_000;

/** Parse `90s`, `15m`, `6h` or `7d` into milliseconds; null if invalid. */
export function parseDurationMs(text: string): number | null {
  const match = AGO.exec(text.trim());
  return match ? Number(match[1]) * UNITS[match[2]!]! : null;
}

/** Parse a time: a duration ago, or a date with a zone or in the displayed one. */
export function parseTime(text: string, nowMs: number, isUtc = false): number | null {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed === "now") return nowMs;
  const ago = parseDurationMs(trimmed);
  if (ago !== null) return nowMs - ago;
  const match =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?))?(Z|[+-]\d{2}:\d{2})?$/.exec(
      trimmed,
    );
  if (!match) return null;
  const [, day, time = "00:00", zone = isUtc ? "Z" : ""] = match;
  const ms = Date.parse(`${day}T${time}${zone}`);
  return Number.isNaN(ms) ? null : ms;
}

/** Resolve a range at a time. An invalid range becomes the last hour. */
export function resolveRange(range: RangeState, nowMs: number): TimeRange {
  const untilMs = parseTime(range.to, nowMs) ?? nowMs;
  const sinceMs = parseTime(range.from, nowMs) ?? untilMs - HOUR_MS;
  return sinceMs < untilMs ? { sinceMs, untilMs } : { sinceMs: untilMs - HOUR_MS, untilMs };
}

/** Whether the range moves with time. */
export function isRelative(range: RangeState): boolean {
  return (
    parseDurationMs(range.from) !== null && (range.to === "" || parseDurationMs(range.to) !== null)
  );
}

/** A fixed range as query parameters. */
export function fixedRange({ sinceMs, untilMs }: TimeRange): RangeState {
  const iso = (ms: number) => new Date(ms).toISOString();
  return { from: iso(Math.floor(sinceMs)), to: iso(Math.ceil(untilMs)), play: false };
}

/** The range as API parameters. */
export function rangeParams({ sinceMs, untilMs }: TimeRange): { since: string; until: string } {
  return { since: new Date(sinceMs).toISOString(), until: new Date(untilMs).toISOString() };
}

const STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
];

/** A round step in seconds, so that about `count` steps fill the range. */
export function roundStepS({ sinceMs, untilMs }: TimeRange, count: number): number {
  const idealS = (untilMs - sinceMs) / 1000 / count;
  return STEPS_S.find((step) => step >= idealS) ?? 86_400 * Math.ceil(idealS / 86_400);
}
