/** Choice of chart columns, and chart lines. */

import type { CellKind } from "./cells";

export interface PlotColumn {
  readonly name: string;
  readonly kind: CellKind;
}

export interface PlotChoice {
  /** Column indices; -1 is none. */
  readonly x: number;
  readonly y: readonly number[];
  readonly series: number;
}

export const LINES_MAX = 20;
export const BARS_MAX = 200;

/** Default columns: numbers over the first time column, a line per text value. */
export function chooseColumns(
  columns: readonly PlotColumn[],
  selection: { readonly x: string; readonly y: readonly string[]; readonly series: string },
): PlotChoice {
  const named = (name: string) => columns.findIndex((column) => column.name === name);
  const first = (kind: CellKind, not: number) =>
    columns.findIndex((column, i) => column.kind === kind && i !== not);
  const selectedX = selection.x ? named(selection.x) : -1;
  const x =
    selectedX >= 0
      ? selectedX
      : ([first("time", -1), first("text", -1), first("truth", -1), columns.length ? 0 : -1].find(
          (each) => each >= 0,
        ) ?? -1);
  const isNumber = (i: number) => columns[i]?.kind === "number";
  const selectedY = selection.y.map(named).filter(isNumber);
  const numbers = columns.map((_, i) => i).filter((i) => i !== x && isNumber(i));
  const selectedSeries = named(selection.series);
  const series =
    selection.series === "-"
      ? -1
      : selectedSeries >= 0
        ? selectedSeries
        : columns[x]?.kind === "time"
          ? first("text", x)
          : -1;
  // With a line per text value, one number column is enough.
  const y = selectedY.length ? selectedY : series >= 0 ? numbers.slice(0, 1) : numbers.slice(0, 8);
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
  /** Shortest interval between two values. */
  readonly stepMs: number;
  /** Number of lines left out. */
  readonly leftOut: number;
}

/** Lines on common times; the largest ones if there are too many. */
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
