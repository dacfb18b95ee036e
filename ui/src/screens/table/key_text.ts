/** Keys as text: the value of the key column, or a JSON array if the key has several columns. */

import type { ColumnBody } from "../../lib/api/types.gen";
import { jsonText, parsedJson } from "../../lib/format/json";

/** As the node writes them: other digits would not come back as they were. */
const INTEGER = /^(0|-?[1-9]\d*)$/;

/** The key as the API takes it. A value that is not of its type is left to the node to refuse. */
export function keyText(columns: readonly ColumnBody[], fields: readonly string[]): string {
  if (columns.length === 1) return fields[0] ?? "";
  return jsonText(
    columns.map((column, i) => {
      const field = fields[i] ?? "";
      return column.type.includes("int") && INTEGER.test(field) ? BigInt(field) : field;
    }),
  );
}

/** The values of a key, one for each column; empty texts if it is no key of such columns. */
export function keyFields(columns: readonly ColumnBody[], key: string): string[] {
  if (columns.length === 1) return [key];
  const values = parsedJson(key);
  if (!Array.isArray(values) || values.length !== columns.length) return columns.map(() => "");
  return values.map((value) => valueText(value));
}

/** The key of a row of the API. */
export function keyOfRow(
  columns: readonly ColumnBody[],
  row: Readonly<Record<string, unknown>>,
): string {
  const fields = columns.map((column) => valueText(row[column.name]));
  return keyText(columns, fields);
}

/** A value of a row, with all digits. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : jsonText(value);
}
