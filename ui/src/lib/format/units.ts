/** Formats values with OpenTelemetry units, short enough for an axis. */

import { bytes, duration, figure } from "./format";

export interface Formatter {
  (value: number | null | undefined): string;
  /** Bytes per unit, if the values are sizes: their axis has round steps in KiB and MiB. */
  readonly unitBytes?: number;
}

/** In nanoseconds. */
const TIMES: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  ms: 1e6,
  s: 1e9,
  min: 60e9,
  h: 3600e9,
  d: 86_400e9,
  milliseconds: 1e6,
  seconds: 1e9,
};

/** In bytes. */
const SIZES: Readonly<Record<string, number>> = {
  By: 1,
  kBy: 1e3,
  KiBy: 1024,
  MBy: 1e6,
  MiBy: 1024 ** 2,
  GBy: 1e9,
  GiBy: 1024 ** 3,
  TBy: 1e12,
  TiBy: 1024 ** 4,
  bytes: 1,
};

/** Longer units are not repeated at each value. */
const UNIT_LETTERS_MAX = 10;

/** Formatter of a unit: 12.3 ms, 4 MiB, 5 %, 0.3/s. */
export function formatterOf(unit: string | null | undefined): Formatter {
  const { base, isRate } = split(unit ?? "");
  const one = plain(base);
  const write = (value: number | null | undefined) => {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    return isRate ? `${one(value)}/s` : one(value);
  };
  const unitBytes = own(SIZES, base);
  return unitBytes === undefined ? write : Object.assign(write, { unitBytes });
}

/**
 * Distances between the ticks of an axis in bytes: powers of two, so that labels are round. Empty
 * for units that are no power of two, such as MB.
 */
export function byteSteps(unitBytes: number): number[] {
  if (!Number.isInteger(Math.log2(unitBytes))) return [];
  return Array.from({ length: 50 }, (_, power) => 2 ** power);
}

/** The unit as displayed: without braces, empty for plain numbers. */
export function unitName(unit: string | null | undefined): string {
  const { base, isRate } = split(unit ?? "");
  const name = base === "1" ? "" : base.replace(/^\{(.*)\}$/, "$1");
  return isRate ? `${name}/s` : name;
}

/** The unit per second. */
export function perSecond(unit: string | null | undefined): string {
  return `${unit || "1"}/s`;
}

function plain(unit: string): (value: number) => string {
  const nano = own(TIMES, unit);
  if (nano !== undefined) return (value) => duration(value * nano);
  const size = own(SIZES, unit);
  if (size !== undefined) return (value) => bytes(value * size);
  if (unit === "%" || unit === "percent") return (value) => `${figure(value)} %`;
  if (/^$|^1$|^\{.*\}$|^ratio$/s.test(unit) || unit.length > UNIT_LETTERS_MAX) return figure;
  return (value) => `${figure(value)} ${unit}`;
}

function own(table: Readonly<Record<string, number>>, name: string): number | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

function split(unit: string): { base: string; isRate: boolean } {
  return unit.endsWith("/s")
    ? { base: unit.slice(0, -2), isRate: true }
    : { base: unit, isRate: false };
}
