/** Columns of a result and their positions in the grid. */

import type { Table } from "@uwdata/flechette";

import { exactText, type CellKind, kindOf, typeName } from "./cells";

export interface GridColumn {
  readonly index: number;
  readonly name: string;
  readonly kind: CellKind;
  readonly type: string;
}

const SAMPLE_ROWS = 100;
const LETTER_PX = 7.4;
const PAD_PX = 20;
const WIDTH_MIN = 56;
const WIDTH_MAX = 420;
export const WIDTH_SMALLEST = 40;

export function columnsOf(table: Table): GridColumn[] {
  return table.schema.fields.map((field, index) => ({
    index,
    name: field.name,
    kind: kindOf(field.type),
    type: typeName(field.type),
  }));
}

/** Width for the first rows. */
export function widthOf(table: Table, column: GridColumn): number {
  let letters = column.name.length + 2;
  const type = table.schema.fields[column.index]!.type;
  const values = table.getChildAt(column.index);
  for (let row = 0; row < Math.min(SAMPLE_ROWS, table.numRows); row++) {
    const value: unknown = values.at(row);
    // Times are shown in milliseconds.
    const length = column.kind === "time" ? 23 : exactText(value, type).length;
    letters = Math.max(letters, length);
  }
  return Math.round(Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, letters * LETTER_PX + PAD_PX)));
}

/** Left edges of the columns, and the total width. */
export function beginsOf(widths: readonly number[]): number[] {
  const begins = [0];
  for (const width of widths) begins.push(begins.at(-1)! + width);
  return begins;
}

/** Visible columns; the end is exclusive. */
export function columnsBetween(
  begins: readonly number[],
  left: number,
  right: number,
): [number, number] {
  const count = begins.length - 1;
  let first = 0;
  while (first < count - 1 && begins[first + 1]! <= left) first += 1;
  let last = first;
  while (last < count && begins[last]! < right) last += 1;
  return [first, last];
}

/** `Timestamp(µs, "UTC")` becomes `timestamp`; type parameters are dropped. */
export function shortType(type: string): string {
  const name = /^\w+/.exec(type)?.[0] ?? type;
  return name.replace(/^(Large)?Utf8(View)?$/, "text").toLowerCase();
}
