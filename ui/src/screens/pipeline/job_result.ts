import type { Flushed, Tidied } from "../../lib/api/types.gen";
import * as format from "../../lib/format/format";

/** Result of a flush or maintenance, in a sentence. */
export function describeResult(done: Flushed | Tidied): string {
  return "commits" in done ? flushed(done) : tidied(done);
}

function flushed({ commits }: Flushed): string {
  if (commits.length === 0) return "Nothing to commit.";
  const rows = commits.reduce((total, commit) => total + commit.row_count, 0);
  return `${format.count(rows)} rows in ${plural(commits.length, "commit")}.`;
}

function tidied({ tables }: Tidied): string {
  const sum = (of: (table: Tidied["tables"][number]) => number) =>
    tables.reduce((total, table) => total + of(table), 0);
  const [joined, made] = [sum((t) => t.files_joined ?? 0), sum((t) => t.files_made ?? 0)];
  const expired = sum((t) => t.snapshots_expired ?? 0);
  const orphans = sum((t) => t.orphans_removed ?? 0);
  const trouble = tables.flatMap((table) => table.trouble ?? []);
  const parts = [
    joined ? `${plural(joined, "file")} compacted into ${format.count(made)}` : "",
    expired ? `${plural(expired, "snapshot")} expired` : "",
    orphans ? `${plural(orphans, "orphan file")} deleted` : "",
    ...trouble,
  ].filter((text) => text !== "");
  return parts.length ? `${parts.join("; ")}.` : "Nothing to do.";
}

function plural(count: number, word: string): string {
  return `${format.count(count)} ${word}${count === 1 ? "" : "s"}`;
}
