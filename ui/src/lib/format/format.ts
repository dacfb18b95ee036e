/** Short formats of numbers, sizes, durations and times. */

import { prefs } from "../state/prefs.svelte";

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 1,234,567 */
export function count(value: number): string {
  return NUMBER.format(value);
}

/** 1.2M */
export function short(value: number): string {
  return SHORT.format(value);
}

/** A number with three significant digits. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 10_000) return SHORT.format(value);
  if (size >= 100 || Number.isInteger(value)) return NUMBER.format(Math.round(value * 10) / 10);
  if (size < 0.001 && size > 0) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** 12.3 MiB */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  let size = value;
  while (Math.abs(size) >= 1024 && unit < BYTES.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size >= 100 || unit === 0 ? Math.round(size) : Number(size.toPrecision(3))} ${BYTES[unit]}`;
}

/** 1.23 ms, 4.5 s, 3 min; from nanoseconds. */
export function duration(nano: number | null | undefined): string {
  if (nano === null || nano === undefined) return "–";
  const size = Math.abs(nano);
  const digits = (value: number) => String(Number(value.toPrecision(3)));
  if (size < 1e3) return `${Math.round(nano)} ns`;
  if (size < 999.5e3) return `${digits(nano / 1e3)} µs`;
  if (size < 999.5e6) return `${digits(nano / 1e6)} ms`;
  if (size < 60e9) return `${digits(nano / 1e9)} s`;
  if (size < 3600e9) return `${digits(nano / 60e9)} min`;
  if (size < 86_400e9) return `${digits(nano / 3600e9)} h`;
  return `${digits(nano / 86_400e9)} d`;
}

/** Time since, as "3 min ago". */
export function ago(seconds: number): string {
  return seconds < 1 ? "now" : `${duration(seconds * 1e9)} ago`;
}

/** 12.3 % */
export function share(part: number, whole: number): string {
  if (!whole) return "0 %";
  const percent = (100 * part) / whole;
  return `${percent > 0 && percent < 0.1 ? "<0.1" : Number(percent.toFixed(percent < 10 ? 1 : 0))} %`;
}

/** Parts of a time in the displayed zone. `time` may have more digits than a Date. */
export interface Moment {
  readonly day: string;
  readonly clock: string;
  /** Fractional digits, at least three. */
  readonly fraction: string;
}

export function momentParts(time: string | number): Moment {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return { day: "", clock: String(time), fraction: "" };
  const shown = prefs.isUtc ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  const iso = shown.toISOString();
  const digits = typeof time === "string" ? /\.(\d+)/.exec(time)?.[1] : undefined;
  return {
    day: iso.slice(0, 10),
    clock: iso.slice(11, 19),
    fraction: (digits ?? iso.slice(20, 23)).padEnd(3, "0"),
  };
}

/** 2026-11-16 12:34:56.789 */
export function moment(time: string | number, digits = 3): string {
  const { day, clock, fraction } = momentParts(time);
  return `${day} ${clock}${digits ? `.${fraction.slice(0, digits)}` : ""}`.trim();
}

/** 12:34:56.789 */
export function clock(time: string | number, digits = 3): string {
  const { clock, fraction } = momentParts(time);
  return digits ? `${clock}.${fraction.slice(0, digits)}` : clock;
}
