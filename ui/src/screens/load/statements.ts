/** Sends statements, and queries, whose few rows come back as objects. */

import { send } from "../../lib/api/client";
import type { SqlAnswer } from "../../lib/api/types.gen";

export type Row = Readonly<Record<string, unknown>>;

export async function execute(sql: string, signal?: AbortSignal): Promise<Row[]> {
  return rowsOf(await send<SqlAnswer>("POST", "api/v1/statements", { sql }, signal));
}

export async function query(sql: string, signal?: AbortSignal): Promise<Row[]> {
  return rowsOf(await send<SqlAnswer>("POST", "api/v1/sql", { sql }, signal));
}

function rowsOf({ columns, rows }: SqlAnswer): Row[] {
  return rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
}

/** A value as text; null is empty. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
