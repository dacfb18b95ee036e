import fc from "fast-check";
import { expect, test } from "vitest";

import { withAsOf, clauseOf, tablesIn } from "./time_travel";
import { tableUses, tokenize } from "./tokens";

const SNAPSHOT = { snapshotId: "4360909388787711101" };
const CLAUSE = "FOR SYSTEM_VERSION AS OF 4360909388787711101";

test.each([
  ["SELECT * FROM logs", `SELECT * FROM logs ${CLAUSE}`],
  ["SELECT * FROM logs l WHERE l.x = 1", `SELECT * FROM logs ${CLAUSE} l WHERE l.x = 1`],
  ['select 1 from "logs"', `select 1 from "logs" ${CLAUSE}`],
  ["SELECT 1 FROM public.logs", `SELECT 1 FROM public.logs ${CLAUSE}`],
  ["SELECT 1 FROM spans, logs AS l", `SELECT 1 FROM spans, logs ${CLAUSE} AS l`],
  [
    "SELECT a, logs FROM spans JOIN LOGS ON true",
    `SELECT a, logs FROM spans JOIN LOGS ${CLAUSE} ON true`,
  ],
  [
    "SELECT extract(day FROM logs), 'from logs' -- from logs\nFROM (SELECT 1 FROM logs)",
    `SELECT extract(day FROM logs), 'from logs' -- from logs\nFROM (SELECT 1 FROM logs ${CLAUSE})`,
  ],
  ["SELECT a IS DISTINCT FROM logs FROM spans", "SELECT a IS DISTINCT FROM logs FROM spans"],
  ["SELECT 1 FROM unnest(logs)", "SELECT 1 FROM unnest(logs)"],
  [
    "SELECT 1 FROM logs FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01' l",
    `SELECT 1 FROM logs ${CLAUSE} l`,
  ],
  ["SELECT 1 FROM logs FOR SYSTEM_VERSION AS OF 'tag'", `SELECT 1 FROM logs ${CLAUSE}`],
])("%s", (sql, wanted) => {
  expect(withAsOf(sql, "logs", SNAPSHOT)).toBe(wanted);
});

/** Random queries, most of them invalid. */
const words = fc
  .array(
    fc.constantFrom(
      ..."SELECT FROM logs spans JOIN , ( ) WHERE x . AS l 'from logs' \"logs\" -- /* */ ' \" \n".split(
        " ",
      ),
      "FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01'",
      "FOR SYSTEM_VERSION AS OF 5",
    ),
    { maxLength: 25 },
  )
  .map((all) => all.join(" "));
const letters = fc.string({ unit: fc.constantFrom(..."a1'\"\n (-/*𝒳é,.") });
const when = fc.oneof(
  fc.constant(SNAPSHOT),
  fc.integer({ min: 0, max: 4e12 }).map((momentMs) => ({ momentMs })),
);

test("the last AS OF wins, and null restores the query", () => {
  fc.assert(
    fc.property(words, when, when, (sql, one, other) => {
      const now = withAsOf(sql, "logs", null);
      expect(withAsOf(withAsOf(sql, "logs", one), "logs", other)).toBe(
        withAsOf(sql, "logs", other),
      );
      expect(withAsOf(now, "logs", null)).toBe(now);
      expect(tablesIn(now).find(({ table }) => table === "logs")?.isOther ?? false).toBe(false);
    }),
  );
});

test("only the clause is added; other tables are unchanged", () => {
  fc.assert(
    fc.property(words, (sql) => {
      const now = withAsOf(sql, "logs", null);
      const bare = (text: string) => text.replaceAll(CLAUSE, "").replaceAll(" ", "");
      expect(bare(withAsOf(now, "logs", SNAPSHOT))).toBe(bare(now));
      expect(withAsOf(sql, "nothing", SNAPSHOT)).toBe(sql);
    }),
  );
});

test("duplicate clauses are merged", () => {
  const twice = "FROM logs FOR SYSTEM_VERSION AS OF 5 FOR SYSTEM_TIME AS OF TIMESTAMP 'x' l";
  expect(withAsOf(twice, "logs", null)).toBe("FROM logs l");
});

test("tokens do not overlap", () => {
  fc.assert(
    fc.property(fc.oneof(words, letters), (sql) => {
      const found = tokenize(sql);
      const isInOrder = found.every(
        ({ begin, end }, i) => begin >= (found[i - 1]?.end ?? 0) && end > begin,
      );
      expect(isInOrder && (found.at(-1)?.end ?? 0) <= sql.length).toBe(true);
      expect(tableUses(sql).every((use) => use.clauseEnd >= use.end)).toBe(true);
    }),
  );
});

test("the clause is valid SQL", () => {
  expect(clauseOf({ momentMs: Date.UTC(2026, 10, 16, 14) })).toBe(
    "FOR SYSTEM_TIME AS OF TIMESTAMP '2026-11-16 14:00:00.000'",
  );
  expect(clauseOf({ snapshotId: "12 OR 1=1" })).toBe("FOR SYSTEM_VERSION AS OF 1211");
});
