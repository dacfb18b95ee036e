/** Figures, names and queries of a keyed table. */

import type { ColumnBody, KeyedTableStatus, TableAnswer } from "../../lib/api/types.gen";

export const STATES: Readonly<Record<KeyedTableStatus["state"], string>> = {
  ok: "ok",
  catching_up: "catching up",
  degraded: "degraded",
  failed: "failed",
};

/** How far a stage is: the offsets of all partitions, added. */
export interface Watermark {
  readonly offset: number;
  /** Durable changes that it does not have. */
  readonly lag: number;
  /** Each partition, for a tooltip. */
  readonly about: string;
}

/** Null if the stage is not known to have anything, such as Iceberg without a lake. */
export function watermark(
  status: KeyedTableStatus,
  stage: "written" | "indexed" | "iceberg",
): Watermark | null {
  const parts = status.partitions ?? [];
  if (!parts.length || parts.every((each) => each[stage] === null)) return null;
  const sum = (of: "written" | typeof stage) =>
    parts.reduce((total, each) => total + (each[of] ?? 0), 0);
  return {
    offset: sum(stage),
    lag: sum("written") - sum(stage),
    about: parts
      .map((each) => `partition ${each.partition}: ${each[stage] ?? 0} of ${each.written}`)
      .join("\n"),
  };
}

/** Words that SQL reads as something else. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    "all and any as asc between by case cast column create cross current delete desc distinct drop " +
    "else end except exists false for from full group having in inner insert intersect interval " +
    "into is join key left like limit not null offset on or order outer primary range right row " +
    "rows select set show system table then time timestamp to true union update user using values " +
    "when where window with"
  ).split(" "),
);

/** A name as SQL takes it. */
export function sqlName(name: string): string {
  if (/^[a-z_][a-z0-9_]*$/.test(name) && !RESERVED.has(name)) return name;
  return `"${name.replaceAll('"', '""')}"`;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

/** A value, as text, in SQL; null if it has no literal there. */
export function sqlLiteral(type: string, text: string): string | null {
  if (type === "binary") return null;
  if (type === "bool") return text;
  if (/^(u?int\d+|float\d+|decimal\(.*)$/.test(type)) return NUMBER.test(text) ? text : null;
  const quoted = `'${text.replaceAll("'", "''")}'`;
  if (type === "date") return `DATE ${quoted}`;
  return type.startsWith("timestamp") ? `TIMESTAMP ${quoted}` : quoted;
}

/** `a = 1 AND b = 'x'`; null if a value has no literal. */
export function keyCondition(
  columns: readonly ColumnBody[],
  values: readonly string[],
): string | null {
  const parts = columns.map((column, i) => {
    const literal = sqlLiteral(column.type, values[i] ?? "");
    return literal === null ? null : `${sqlName(column.name)} = ${literal}`;
  });
  return parts.includes(null) ? null : parts.join(" AND ");
}

/** A query of one row, or of some. */
export function selectText(
  table: TableAnswer,
  key: readonly string[] | null,
  limit: number,
): string {
  const where = key && keyCondition(keyColumns(table), key);
  const head = `SELECT *\nFROM ${sqlName(table.table)}`;
  return where ? `${head}\nWHERE ${where}` : `${head}\nLIMIT ${limit}`;
}

export function keyColumns(table: TableAnswer): ColumnBody[] {
  return table.key.flatMap((name) => table.columns.filter((column) => column.name === name));
}

const SQL_TYPES: Readonly<Record<string, string>> = {
  bool: "BOOLEAN",
  int8: "TINYINT",
  int16: "SMALLINT",
  int32: "INT",
  int64: "BIGINT",
  uint8: "TINYINT UNSIGNED",
  uint16: "SMALLINT UNSIGNED",
  uint32: "INT UNSIGNED",
  uint64: "BIGINT UNSIGNED",
  float32: "FLOAT",
  float64: "DOUBLE",
  string: "VARCHAR",
  date: "DATE",
  timestamp: "TIMESTAMP",
  timestamptz: "TIMESTAMPTZ",
  binary: "BINARY",
};

/** The statement that creates a table like this one. */
export function createText(table: TableAnswer): string {
  const columns = table.columns.map((column) => {
    const type = SQL_TYPES[column.type] ?? column.type.toUpperCase().replace(",", ", ");
    const isNullable = column.nullable !== false || table.key.includes(column.name);
    return `  ${sqlName(column.name)} ${type}${isNullable ? "" : " NOT NULL"},`;
  });
  const key = table.key.map(sqlName).join(", ");
  const partitions = table.partitions > 1 ? ` PARTITIONS ${table.partitions}` : "";
  return [
    `CREATE TABLE ${sqlName(table.table)} (`,
    ...columns,
    `  PRIMARY KEY (${key})`,
    `)${partitions}`,
  ].join("\n");
}
