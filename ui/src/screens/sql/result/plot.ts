/** Which columns a chart is of, and what it draws. */

import type { CellKind } from "./cells";

export interface PlotColumn {
  readonly name: string;
  readonly kind: CellKind;
}

export interface PlotChoice {
  /** Columns by their number; -1 is none. */
  readonly x: number;
  readonly y: readonly number[];
  readonly series: number;
}

export const LINES_MAX = 20;
export const BARS_MAX = 200;

/** What is drawn when nobody has chosen: numbers over the first time, a line for each text. */
export function chooseColumns(
  columns: readonly PlotColumn[],
  asked: { readonly x: string; readonly y: readonly string[]; readonly series: string },
): PlotChoice {
  const named = (name: string) => columns.findIndex((column) => column.name === name);
  const first = (kind: CellKind, not: number) =>
    columns.findIndex((column, i) => column.kind === kind && i !== not);
  const askedX = asked.x ? named(asked.x) : -1;
  const x =
    askedX >= 0
      ? askedX
      : ([first("time", -1), first("text", -1), first("truth", -1), columns.length ? 0 : -1].find(
          (each) => each >= 0,
        ) ?? -1);
  const isNumber = (i: number) => columns[i]?.kind === "number";
  const askedY = asked.y.map(named).filter(isNumber);
  const numbers = columns.map((_, i) => i).filter((i) => i !== x && isNumber(i));
  const askedSeries = named(asked.series);
  const series =
    asked.series === "-"
      ? -1
      : askedSeries >= 0
        ? askedSeries
        : columns[x]?.kind === "time"
          ? first("text", x)
          : -1;
  // With a line for each text, one number is enough to be understood.
  const y = askedY.length ? askedY : series >= 0 ? numbers.slice(0, 1) : numbers.slice(0, 8);
  return { x, y, series };
}

export interface Point {
  readonly timeMs: number;
  readonly name: string;
  readonly value: number | null;
}

export interface PlotLines {
  readonly timesMs: number[];
  readonly lines: { readonly name: string; readonly values: (number | null)[] }[];
  /** The shortest time between two values. */
  readonly stepMs: number;
  /** Lines for which there was no room. */
  readonly leftOut: number;
}

/** Lines over common times; the largest ones, when there are too many. */
export function plotLines(points: readonly Point[]): PlotLines {
  const timesMs = [...new Set(points.map((point) => point.timeMs))].sort((a, b) => a - b);
  const places = new Map(timesMs.map((time, i) => [time, i]));
  const lines = new Map<string, (number | null)[]>();
  for (const { timeMs, name, value } of points) {
    let values = lines.get(name);
    if (!values) lines.set(name, (values = new Array<number | null>(timesMs.length).fill(null)));
    values[places.get(timeMs)!] = value;
  }
  const weight = (values: readonly (number | null)[]) =>
    values.reduce<number>((sum, value) => sum + Math.abs(value ?? 0), 0);
  const all = [...lines].map(([name, values]) => ({ name, values }));
  const kept =
    all.length <= LINES_MAX
      ? all
      : all.sort((a, b) => weight(b.values) - weight(a.values)).slice(0, LINES_MAX);
  const steps = timesMs.slice(1).map((time, i) => time - timesMs[i]!);
  return {
    timesMs,
    lines: kept,
    stepMs: steps.length ? Math.min(...steps.slice(0, 10_000)) : 60_000,
    leftOut: all.length - kept.length,
  };
}
