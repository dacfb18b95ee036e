/** Completions of the SQL editor. */

import type { Schema } from "../schema/schema.svelte";
import { tableUses } from "./tokens";

export interface Completion {
  /** Displayed and matched. */
  readonly label: string;
  /** Inserted text. */
  readonly text: string;
  readonly hint: string;
}

export interface Completions {
  /** Range that the completion replaces. */
  readonly from: number;
  readonly to: number;
  readonly items: readonly Completion[];
}

export const KEYWORDS: readonly string[] = (
  "select from where group by order having limit offset as on using join inner left right full " +
  "outer cross lateral union all except intersect distinct with recursive values case when then " +
  "else end and or not in is null like ilike between exists cast filter over partition rows range " +
  "preceding following unbounded current row asc desc nulls first last interval timestamp date " +
  "true false explain analyze describe show tables any some similar to escape window qualify " +
  "for system_time system_version of unnest extract"
).split(" ");

const ITEMS_MAX = 60;
const ATTRIBUTE = /([A-Za-z_]*attributes)\s*\[\s*('?)([^'\]]*)$/;
const WORD = /[A-Za-z_][\w$]*$/;

/**
 * Completions at the caret: attribute keys inside brackets; otherwise columns of the query's
 * tables, tables, functions and keywords. Null if there are none.
 */
export async function completionsAt(
  sql: string,
  caret: number,
  schema: Schema,
  keysOf: (table: string, column: string) => Promise<string[]>,
  isAsked = false,
): Promise<Completions | null> {
  const before = sql.slice(0, caret);
  const named = new Set(tableUses(sql).map((use) => use.table));
  const tables = schema.tables.filter((table) => named.has(table.name));
  const attribute = ATTRIBUTE.exec(before);
  if (attribute) {
    const [, column = "attributes", quote = "", typed = ""] = attribute;
    const keys = await keysOf(tables[0]?.name ?? "spans", column);
    // Existing closing characters are overwritten.
    const rest = /^'?\]?/.exec(sql.slice(caret))?.[0].length ?? 0;
    const all = keys.map((key) => ({
      label: key,
      text: `${quote ? "" : "'"}${key.replaceAll("'", "''")}']`,
      hint: column,
    }));
    return some(caret - typed.length, caret + rest, rankMatches(all, typed));
  }
  const typed = WORD.exec(before)?.[0] ?? "";
  if ((!typed && !isAsked) || isInside(before.slice(0, caret - typed.length))) return null;
  const found = rankMatches(wordsFor(schema, tables), typed);
  return some(caret - typed.length, caret, found);
}

/** All candidates, most relevant first. */
function wordsFor(schema: Schema, tables: Schema["tables"]): Completion[] {
  const all = new Map<string, Completion>();
  const add = (label: string, hint: string, text = label) => {
    if (!all.has(label)) all.set(label, { label, text, hint });
  };
  for (const table of tables) {
    for (const column of table.columns) add(column.name, column.type);
  }
  for (const table of schema.tables) add(table.name, "table");
  for (const word of KEYWORDS) add(word.toUpperCase(), "");
  for (const name of schema.functions) add(name, "function", `${name}(`);
  return [...all.values()];
}

/** Prefix matches first, then substring matches. */
export function rankMatches(all: readonly Completion[], typed: string): Completion[] {
  const needle = typed.toLowerCase();
  const places = all.map((offer) => offer.label.toLowerCase().indexOf(needle));
  const begin = all.filter((_, i) => places[i] === 0);
  const within = all.filter((_, i) => places[i]! > 0);
  return [...begin, ...within].slice(0, ITEMS_MAX);
}

/** Null without candidates. */
function some(from: number, to: number, items: readonly Completion[]): Completions | null {
  return items.length ? { from, to, items } : null;
}

/** No names inside strings and comments, or after a dot. */
function isInside(before: string): boolean {
  if (/[.\w$]$/.test(before)) return true;
  const rest = before.replace(/--[^\n]*\n|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"/g, "");
  return /--|\/\*|'|"/.test(rest);
}
