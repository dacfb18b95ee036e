/** Versions of a row, and what each one changed. */

import type { ColumnBody } from "../../lib/api/types.gen";
import { jsonText } from "../../lib/format/json";

/** A change as the API returns it: the row after it, and `_change`, `_offset`, `_time`, `_by`. */
export type ChangeRow = Readonly<Record<string, unknown>> & {
  readonly _change: "insert" | "update" | "delete" | null;
  readonly _offset: number;
  /** Null if the log no longer has the change. */
  readonly _time: string | null;
  /** Who made the change; null if that is not known. */
  readonly _by: string | null;
};

export interface Version {
  readonly row: ChangeRow;
  /** Columns whose values differ from the version before, with those values. */
  readonly before: ReadonlyMap<string, unknown>;
}

/** Versions, the newest first, of changes in order. */
export function versionsOf(
  columns: readonly ColumnBody[],
  changes: readonly ChangeRow[],
): Version[] {
  return changes
    .map((row, i) => {
      const last = changes[i - 1];
      const isCompared = row._change === "update" && last !== undefined;
      const changed = columns.filter(
        ({ name }) => isCompared && jsonText(last[name]) !== jsonText(row[name]),
      );
      return { row, before: new Map(changed.map(({ name }) => [name, last?.[name]])) };
    })
    .reverse();
}

/** The row as it is now; null if it was deleted, or never was. */
export function currentRow(changes: readonly ChangeRow[]): ChangeRow | null {
  const last = changes.at(-1);
  return last && last._change !== "delete" ? last : null;
}

/** The columns outside of the key on one line. */
export function previewText(
  columns: readonly ColumnBody[],
  key: readonly string[],
  row: ChangeRow,
): string {
  return columns
    .filter(({ name }) => !key.includes(name))
    .map(({ name }) => `${name}: ${jsonText(row[name])}`)
    .join(", ");
}
