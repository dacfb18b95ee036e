/** A query about other times: tables of it, as they were. */

import { tableUses } from "./tokens";

/** A snapshot by its id, which is a text as it has too many digits; or a moment. */
export type PointInTime = { readonly snapshotId: string } | { readonly momentMs: number };

export function clauseOf(when: PointInTime): string {
  if ("snapshotId" in when) {
    // Only digits: whatever else it is, it is no id.
    return `FOR SYSTEM_VERSION AS OF ${when.snapshotId.replace(/\D/g, "")}`;
  }
  const moment = new Date(when.momentMs).toISOString().replace("T", " ").replace("Z", "");
  return `FOR SYSTEM_TIME AS OF TIMESTAMP '${moment}'`;
}

/** The same query, with a table as of then wherever it is named; null is as of now. */
export function withAsOf(sql: string, table: string, when: PointInTime | null): string {
  let text = "";
  let at = 0;
  for (const use of tableUses(sql)) {
    if (use.table !== table) continue;
    text += sql.slice(at, use.end) + (when ? ` ${clauseOf(when)}` : "");
    at = use.clauseEnd;
    // What follows must not become a part of it, as a quote behind a quote would.
    if (when && /[\w'"$]/.test(sql[at] ?? "")) text += " ";
  }
  return text + sql.slice(at);
}

/** The tables that a query names, each once, and whether it is one of another time there. */
export function tablesIn(sql: string): { table: string; isOther: boolean }[] {
  const found = new Map<string, boolean>();
  for (const use of tableUses(sql)) {
    found.set(use.table, (found.get(use.table) ?? false) || use.clauseEnd > use.end);
  }
  return [...found].map(([table, isOther]) => ({ table, isOther }));
}
