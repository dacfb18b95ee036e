/** How to write to a table, with its own columns. */

import type { ColumnBody, TableAnswer } from "../../lib/api/types.gen";
import { keyColumns, sqlName } from "../tables/table_text";

export interface WriteSnippet {
  readonly says: string;
  readonly text: string;
  readonly isSql?: boolean;
}

/** Columns outside of the key in a snippet; tables may have hundreds. */
const COLUMNS_MAX = 12;

type Language = "json" | "python" | "sql";

/** `root` is the address of the node, with a slash at its end. */
export function writeSnippets(root: string, table: TableAnswer): WriteSnippet[] {
  const name = table.table;
  const key = keyColumns(table);
  const others = table.columns.filter((column) => !table.key.includes(column.name));
  const required = others.filter((column) => column.nullable === false);
  const chosen = [...new Set([...required, ...others.slice(0, COLUMNS_MAX)])];
  const row = [...key, ...others.filter((column) => chosen.includes(column))];
  const set = chosen[0];
  const rows = `${root}api/v1/tables/${name}/rows`;
  const where = key.map((each) => `${sqlName(each.name)} = ${example(each, "sql")}`).join(" AND ");
  const updated = set && [...key, set];
  return [
    {
      says: "From the command line: put a row, then remove it",
      text: [
        curl(rows, object(row, "json")),
        curl(`${rows}?operation=delete`, object(key, "json")),
      ].join("\n\n"),
    },
    { says: "From Python", text: python(root, name, row, updated, key) },
    {
      says: "SQL: put rows, in place of those with the same keys",
      text: `UPSERT INTO ${sqlName(name)} (${row.map((each) => sqlName(each.name)).join(", ")})\nVALUES (${row.map((each) => example(each, "sql")).join(", ")})`,
      isSql: true,
    },
    ...(set
      ? [
          {
            says: "SQL: change rows",
            text: `UPDATE ${sqlName(name)}\nSET ${sqlName(set.name)} = ${example(set, "sql")}\nWHERE ${where}`,
            isSql: true,
          },
        ]
      : []),
    {
      says: "SQL: remove rows",
      text: `DELETE FROM ${sqlName(name)}\nWHERE ${where}`,
      isSql: true,
    },
  ];
}

function curl(address: string, line: string): string {
  return [
    `curl '${address}' \\`,
    "  -H 'Content-Type: application/x-ndjson' \\",
    `  --data-binary '${line}'`,
  ].join("\n");
}

function object(columns: readonly ColumnBody[], language: Language): string {
  return `{${columns.map((each) => `"${each.name}": ${example(each, language)}`).join(", ")}}`;
}

function python(
  root: string,
  name: string,
  row: readonly ColumnBody[],
  updated: readonly ColumnBody[] | undefined,
  key: readonly ColumnBody[],
): string {
  const code = object(row, "python");
  const values = key.map((each) => example(each, "python")).join(", ");
  const one = key.length > 1 ? `(${values})` : values;
  return [
    ...(code.includes("datetime.") ? ["import datetime"] : []),
    ...(code.includes("Decimal(") ? ["from decimal import Decimal"] : []),
    "import frazil",
    "",
    `node = frazil.connect("${root.replace(/\/$/, "")}")`,
    `table = node.table("${name}")`,
    `table.upsert([${code}])`,
    ...(updated ? [`table.update([${object(updated, "python")}])`] : []),
    `print(table.get(${one}))`,
    `table.delete([${one}])`,
  ].join("\n");
}

/** A value of a column's type. */
export function example({ type }: ColumnBody, language: Language): string {
  const byLanguage = (json: string, inPython: string, sql: string) =>
    ({ json, python: inPython, sql })[language];
  if (type === "bool") return byLanguage("true", "True", "true");
  if (type === "string") return byLanguage('"text"', '"text"', "'text'");
  if (type === "binary") return byLanguage('"AQI="', 'b"\\x01\\x02"', "X'0102'");
  if (type === "date") {
    return byLanguage('"2026-01-31"', "datetime.date(2026, 1, 31)", "DATE '2026-01-31'");
  }
  if (type === "timestamp") {
    return byLanguage(
      '"2026-01-31T12:00:00"',
      "datetime.datetime(2026, 1, 31, 12)",
      "TIMESTAMP '2026-01-31 12:00:00'",
    );
  }
  if (type === "timestamptz") {
    return byLanguage(
      '"2026-01-31T12:00:00Z"',
      "datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)",
      "TIMESTAMP '2026-01-31 12:00:00Z'",
    );
  }
  if (type.startsWith("float")) return "1.5";
  const decimal = /^decimal\((\d+),(\d+)\)$/.exec(type);
  if (!decimal) return "1";
  const digit = Number(decimal[1]) > Number(decimal[2]) ? "1" : "0";
  return byLanguage(`"${digit}"`, `Decimal("${digit}")`, digit);
}
