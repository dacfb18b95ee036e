/** SQL rows as lines over time or named values. */

import type { SqlAnswer } from "../../../lib/api/types.gen";
import type { ChartData, Line } from "../../../lib/metrics/metric";
import { summarize } from "../../../lib/metrics/metric";

const TIMES = /^(timestamp|date)/;
const NUMBERS = /^(u?int|float|double|half|decimal)/;
const LINES_MAX = 50;

/** Columns whose type matches. */
function columnsOf({ types }: SqlAnswer, pattern: RegExp): number[] {
  return (types ?? []).flatMap((type, i) => (pattern.test(type) ? [i] : []));
}

export function hasTime(answer: SqlAnswer): boolean {
  return columnsOf(answer, TIMES).length > 0;
}

/**
 * The first time column is the time axis; each number column is a line, per combination of the text
 * columns.
 */
export function rowLines(answer: SqlAnswer): ChartData {
  const [time] = columnsOf(answer, TIMES);
  const numbers = columnsOf(answer, NUMBERS);
  if (time === undefined) throw new Error("No time column. Select one first.");
  if (!numbers.length) throw new Error("No number column. Select one.");
  const texts = answer.columns.flatMap((_, i) => (i === time || numbers.includes(i) ? [] : [i]));
  const byLine = new Map<string, Map<number, number>>();
  const times = new Set<number>();
  for (const row of answer.rows) {
    const ms = Date.parse(zoned(String(row[time])));
    if (Number.isNaN(ms)) continue;
    times.add(ms);
    const label = texts.map((i) => textOf(row[i])).join(", ");
    for (const number of numbers) {
      const name = nameOf(label, answer.columns[number] ?? "", numbers.length);
      const values = byLine.get(name) ?? new Map<number, number>();
      byLine.set(name, values);
      const value = numberOf(row[number]);
      if (value !== null) values.set(ms, value);
    }
  }
  const timesMs = [...times].sort((one, other) => one - other);
  const all = [...byLine].map(([name, values]): Line => ({
    name,
    labels: {},
    aggregate: "",
    values: timesMs.map((ms) => values.get(ms) ?? null),
  }));
  return {
    type: null,
    unit: null,
    stepS: stepOf(timesMs),
    timesMs,
    lines: all.slice(0, LINES_MAX),
    isCut: answer.is_cut === true || all.length > LINES_MAX,
  };
}

export interface NamedValue {
  readonly name: string;
  readonly value: number;
}

/** The text columns as the name, the first number column as the value. */
export function rowValues(answer: SqlAnswer): NamedValue[] {
  const [number] = columnsOf(answer, NUMBERS);
  if (number === undefined) throw new Error("No number column. Select one.");
  return answer.rows.flatMap((row) => {
    const value = numberOf(row[number]);
    if (value === null) return [];
    const name = row.filter((_, i) => i !== number && !isNumber(answer, i)).map(textOf);
    return [{ name: name.join(", ") || (answer.columns[number] ?? ""), value }];
  });
}

/** Reduce each line to one number. */
export function reduceLines(
  lines: readonly Line[],
  reduce: "last" | "avg" | "min" | "max" | "sum",
): NamedValue[] {
  return lines.flatMap(({ name, values }) => {
    const numbers = values.filter((value): value is number => typeof value === "number");
    const value =
      reduce === "sum" ? numbers.reduce((a, b) => a + b, 0) : (summarize(values)[reduce] ?? null);
    return value === null || !numbers.length ? [] : [{ name, value }];
  });
}

/** In descending order. */
export function topOf(named: readonly NamedValue[], limit: number): NamedValue[] {
  return named.toSorted((one, other) => other.value - one.value).slice(0, limit);
}

/** A cell as text. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function isNumber({ types }: SqlAnswer, i: number): boolean {
  return NUMBERS.test(types?.[i] ?? "");
}

/** Decimals and non-finite numbers arrive as text. */
function numberOf(value: unknown): number | null {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

function nameOf(label: string, column: string, numbers: number): string {
  if (!label) return column;
  return numbers > 1 ? `${column} ${label}` : label;
}

/** Times without a zone are UTC. */
function zoned(text: string): string {
  return /T.*(Z|[+-]\d\d:\d\d)$/.test(text) || !text.includes("T") ? text : `${text}Z`;
}

function stepOf(timesMs: readonly number[]): number {
  const apart = timesMs.slice(1).map((ms, i) => ms - (timesMs[i] ?? 0));
  return apart.length ? Math.max(0.001, Math.min(...apart) / 1000) : 60;
}
