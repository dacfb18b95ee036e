/** Tables, columns and functions of the node. */

import { get, send } from "../../../lib/api/client";
import type { TablesAnswer } from "../../../lib/api/types.gen";
import { shortType } from "../result/columns";

export interface Column {
  readonly name: string;
  readonly type: string;
}

export interface SchemaTable {
  readonly name: string;
  readonly group: (typeof GROUPS)[number];
  readonly columns: readonly Column[];
}

export interface Schema {
  readonly tables: readonly SchemaTable[];
  readonly functions: readonly string[];
}

interface Rows {
  readonly rows: readonly (readonly string[])[];
}

const COLUMNS = `SELECT table_name, column_name, data_type FROM information_schema.columns
WHERE table_schema = 'public' ORDER BY table_name, ordinal_position`;
const FUNCTIONS = "SELECT DISTINCT routine_name FROM information_schema.routines ORDER BY 1";
/** Frazil's own functions, which the engine does not list. */
const ADDED = ["matches", "get_json_object", "time_bucket", "percentile", "now"];
const TELEMETRY = ["logs", "spans", "entry_spans", "metrics", "dead_letters"];
const METRIC_TYPES = ["gauges", "sums", "histograms", "exponential_histograms", "summaries"];
const METADATA = ["snapshots", "statement_audit"];
export const GROUPS = [
  "Telemetry",
  "Tables",
  "Views",
  "Metric types",
  "Topics",
  "Metadata",
] as const;

export async function schemaOf(signal: AbortSignal): Promise<Schema> {
  const ask = (sql: string) => send<Rows>("POST", "api/v1/sql", { sql }, signal);
  const [columns, functions, keyed] = await Promise.all([
    ask(COLUMNS),
    ask(FUNCTIONS),
    keyedTables(signal),
  ]);
  const tables = new Map<string, Column[]>();
  for (const [table, name, type] of columns.rows) {
    if (!table || !name) continue;
    tables.set(table, [...(tables.get(table) ?? []), { name, type: shortType(type ?? "") }]);
  }
  return {
    tables: [...tables].map(([name, all]) => ({
      name,
      group: keyed.has(name) ? "Tables" : groupOf(name),
      columns: all,
    })),
    functions: [...new Set([...functions.rows.map(([name]) => name ?? ""), ...ADDED])].sort(),
  };
}

/** Names of keyed tables; none if they cannot be listed: they are grouped with views then. */
async function keyedTables(signal: AbortSignal): Promise<Set<string>> {
  try {
    const answer = await get<TablesAnswer>("api/v1/tables", {}, signal);
    return new Set(answer.tables.map(({ table }) => table));
  } catch (error) {
    if (signal.aborted) throw error;
    return new Set();
  }
}

function groupOf(table: string): SchemaTable["group"] {
  if (TELEMETRY.includes(table)) return "Telemetry";
  if (METADATA.includes(table)) return "Metadata";
  if (METRIC_TYPES.includes(table)) return "Metric types";
  return table.startsWith("topic_") ? "Topics" : "Views";
}

const KEYS_MAX = 500;
const SAMPLE_ROWS = 5000;
const keys = new Map<string, Promise<string[]>>();

/** Attribute keys of a column, most frequent first; fetched once. */
export function keysOf(table: string, column: string): Promise<string[]> {
  const place = `${table}.${column}`;
  let found = keys.get(place);
  if (!found) {
    const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
    // Any rows will do; without an order the query is faster.
    const sql = `SELECT key FROM (SELECT unnest(map_keys(${quoted(column)})) AS key
      FROM (SELECT ${quoted(column)} FROM ${quoted(table)} LIMIT ${SAMPLE_ROWS}))
      GROUP BY key ORDER BY count(*) DESC LIMIT ${KEYS_MAX}`;
    found = send<Rows>("POST", "api/v1/sql", { sql }).then(
      (answer) => answer.rows.map(([key]) => key ?? ""),
      () => [], // A failed completion is not an error.
    );
    keys.set(place, found);
  }
  return found;
}
