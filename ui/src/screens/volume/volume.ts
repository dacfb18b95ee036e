/** Volume per service: totals, comparison, projection. */

import type { Status, Volume } from "../../lib/api/types.gen";

export const SIGNALS = ["logs", "spans", "metrics"] as const;
export type Signal = (typeof SIGNALS)[number];
export const OTHERS = "(other)";
const DAY_S = 86_400;
const GB = 1e9;

export type Counts = Readonly<Record<Signal, number>>;

export interface VolumeLine {
  readonly service: string;
  readonly counts: Counts;
  readonly rows: number;
  /** Rows in the previous range of the same length. */
  readonly before: number;
}

/** One row per service that sends now or did before. */
export function volumeLines(
  volumes: readonly Volume[],
  before: readonly Volume[],
  signals: readonly Signal[],
): VolumeLine[] {
  const found = new Map<string, { counts: Record<Signal, number>; before: number }>();
  const line = (service: string) => {
    const known = found.get(service) ?? { counts: { logs: 0, spans: 0, metrics: 0 }, before: 0 };
    found.set(service, known);
    return known;
  };
  for (const each of volumes) {
    if (signals.includes(each.signal)) line(each.service).counts[each.signal] += each.row_count;
  }
  for (const each of before) {
    if (signals.includes(each.signal)) line(each.service).before += each.row_count;
  }
  return [...found].map(([service, { counts, before: earlier }]) => ({
    service,
    counts,
    rows: SIGNALS.reduce((total, signal) => total + counts[signal], 0),
    before: earlier,
  }));
}

export function sortLines(
  lines: readonly VolumeLine[],
  order: "rows" | "growth" | "service",
): VolumeLine[] {
  return lines.toSorted((one, other) => {
    const byName = one.service < other.service ? -1 : 1;
    if (order === "service") return byName;
    const by = (line: VolumeLine) => (order === "rows" ? line.rows : line.rows - line.before);
    return by(other) - by(one) || byName;
  });
}

/** Change of the row count: "+12 %", "new", "gone" or "no change". */
export function growthText(rows: number, before: number): string {
  if (before === 0) return rows === 0 ? "–" : "new";
  if (rows === 0) return "gone";
  const percent = Math.round((100 * (rows - before)) / before);
  if (percent === 0) return "no change";
  return `${percent > 0 ? "+" : "−"}${Math.abs(percent)} %`;
}

export interface Layer {
  readonly name: string;
  readonly values: readonly number[];
}

/** Chart layers, largest first, the rest combined. Every step has a value in each. */
export function layersOf(
  volumes: readonly Volume[],
  timesMs: readonly number[],
  nameOf: (volume: Volume) => string,
  count: number,
): Layer[] {
  const totals = new Map<string, number>();
  for (const each of volumes) {
    totals.set(nameOf(each), (totals.get(nameOf(each)) ?? 0) + each.row_count);
  }
  const names = [...totals].sort((one, other) => other[1] - one[1]).map(([name]) => name);
  const shown = names.length > count ? names.slice(0, count - 1) : names;
  const layers = new Map<string, number[]>();
  const layer = (name: string) => {
    const known = layers.get(name) ?? timesMs.map(() => 0);
    layers.set(name, known);
    return known;
  };
  for (const name of shown) layer(name);
  const places = new Map(timesMs.map((ms, i) => [ms, i]));
  for (const each of volumes) {
    const place = places.get(Date.parse(each.time ?? ""));
    if (place === undefined) continue;
    const name = nameOf(each);
    layer(shown.includes(name) ? name : OTHERS)[place]! += each.row_count;
  }
  return [...layers].map(([name, values]) => ({ name, values }));
}

/** A colour per name, unique within the chart. */
export function colorsOf(
  names: readonly string[],
  own: (name: string) => string,
  other: (index: number) => string,
): Map<string, string> {
  const colors = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of names) {
    let color = own(name);
    for (let i = 0; i <= names.length && (color === "" || taken.has(color)); i++) color = other(i);
    taken.add(color);
    colors.set(name, color);
  }
  return colors;
}

/** Start times of steps: multiples since 1970, as the node counts. */
export function stepsOf(sinceMs: number, untilMs: number, stepMs: number): number[] {
  const first = Math.floor(sinceMs / stepMs) * stepMs;
  const times = [];
  for (let ms = first; ms < untilMs; ms += stepMs) times.push(ms);
  return times;
}

export interface Weight {
  /** Bytes per row in the lake's files; null without data. */
  readonly stored: number | null;
  /** Bytes per row in requests; null if none arrived since the start. */
  readonly sent: number | null;
}

/** Bytes per row and signal, as measured on this node. */
export function weightsOf({ lake, ingest }: Status): Record<Signal, Weight> {
  const weight = (signal: Signal): Weight => {
    const table = lake?.tables.find((each) => each.table === signal);
    const came = ingest.signals.find(
      (each) => each.signal === (signal === "spans" ? "traces" : signal),
    );
    return {
      stored: table?.rows ? table.bytes / table.rows : null,
      sent: came?.accepted_records ? came.accepted_bytes / came.accepted_records : null,
    };
  };
  return { logs: weight("logs"), spans: weight("spans"), metrics: weight("metrics") };
}

/** Total bytes; null if the size of a signal with rows is unknown. */
export function bytesOf(
  counts: Counts,
  weights: Record<Signal, Weight>,
  kind: keyof Weight,
): number | null {
  let total = 0;
  for (const signal of SIGNALS) {
    if (!counts[signal]) continue;
    const weight = weights[signal][kind];
    if (weight === null) return null;
    total += counts[signal] * weight;
  }
  return total;
}

/** Daily volume at the rate of that range. */
export function perDay(amount: number, sinceMs: number, untilMs: number): number {
  return (amount * DAY_S * 1000) / Math.max(1, untilMs - sinceMs);
}

/** Monthly cost of keeping `days` days. */
export function costOf(bytesPerDay: number, days: number, price: number): number {
  return (bytesPerDay * days * price) / GB;
}
