/** AS OF clauses of a query. */

import { tableUses } from "./tokens";

/** A snapshot id, as text because it exceeds a number's precision, or a time. */
export type PointInTime = { readonly snapshotId: string } | { readonly momentMs: number };

export function clauseOf(when: PointInTime): string {
  if ("snapshotId" in when) {
    // An id has only digits.
    return `FOR SYSTEM_VERSION AS OF ${when.snapshotId.replace(/\D/g, "")}`;
  }
  const moment = new Date(when.momentMs).toISOString().replace("T", " ").replace("Z", "");
  return `FOR SYSTEM_TIME AS OF TIMESTAMP '${moment}'`;
}

/** Add an AS OF clause to every use of a table; null removes it. */
export function withAsOf(sql: string, table: string, when: PointInTime | null): string {
  let text = "";
  let at = 0;
  for (const use of tableUses(sql)) {
    if (use.table !== table) continue;
    text += sql.slice(at, use.end) + (when ? ` ${clauseOf(when)}` : "");
    at = use.clauseEnd;
    // Separate the clause from what follows.
    if (when && /[\w'"$]/.test(sql[at] ?? "")) text += " ";
  }
  return text + sql.slice(at);
}

/** Tables of a query, and whether each has an AS OF clause. */
export function tablesIn(sql: string): { table: string; isOther: boolean }[] {
  const found = new Map<string, boolean>();
  for (const use of tableUses(sql)) {
    found.set(use.table, (found.get(use.table) ?? false) || use.clauseEnd > use.end);
  }
  return [...found].map(([table, isOther]) => ({ table, isOther }));
}
