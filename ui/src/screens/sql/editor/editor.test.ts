import fc from "fast-check";
import { expect, test } from "vitest";

import { highlightLines } from "./highlight";
import { rankMatches, completionsAt } from "./completions";
import type { Schema } from "../schema/schema.svelte";

const schema: Schema = {
  tables: [
    { name: "logs", group: "Telemetry", columns: [{ name: "body", type: "text" }] },
    { name: "spans", group: "Telemetry", columns: [{ name: "duration_nano", type: "bigint" }] },
  ],
  functions: ["date_trunc", "matches"],
};
const keysOf = (table: string, column: string) => Promise.resolve([`${table}.${column}`, "it's"]);

async function labels(sql: string, isAsked = false): Promise<string[] | null> {
  const caret = sql.indexOf("|");
  const found = await completionsAt(sql.replace("|", ""), caret, schema, keysOf, isAsked);
  return found && found.items.map((item) => item.label);
}

test("highlighted pieces join to the query, wherever the error is", () => {
  const words = fc.array(
    fc.constantFrom(
      "select",
      " ",
      "\n",
      "'a",
      "'",
      "--",
      "/*",
      "*/",
      "12.5",
      "é_x",
      "(",
      "\u{1F600}",
    ),
  );
  fc.assert(
    fc.property(words, fc.nat(30), fc.nat(30), (parts, from, length) => {
      const sql = parts.join("");
      const lines = highlightLines(sql, { from, to: from + length });
      expect(lines.map((line) => line.map((piece) => piece.text).join("")).join("\n")).toBe(sql);
      const wrong = lines.flat().filter((piece) => piece.isWrong);
      const marked = wrong.map((piece) => piece.text).join("");
      expect(marked).toBe(sql.slice(from, from + length).replaceAll("\n", ""));
    }),
  );
});

test("tokens are highlighted by kind", () => {
  const kinds = highlightLines("SELECT 'from' -- where\n, 12 FROM logs", null)
    .flat()
    .filter((piece) => piece.kind)
    .map((piece) => [piece.kind, piece.text]);
  expect(kinds).toEqual([
    ["keyword", "SELECT"],
    ["text", "'from'"],
    ["comment", "-- where"],
    ["number", "12"],
    ["keyword", "FROM"],
  ]);
});

test("columns come from the query's tables", async () => {
  expect(await labels("SELECT bo| FROM logs")).toContain("body");
  expect(await labels("SELECT bo| FROM spans")).not.toContain("body");
  expect(await labels("SELECT * FROM lo|")).toContain("logs");
  expect(await labels("SELECT | FROM logs")).toBeNull();
  expect((await labels("SELECT | FROM logs", true))?.[0]).toBe("body");
});

test("no completions in strings and comments", async () => {
  expect(await labels("SELECT 'bo| FROM logs")).toBeNull();
  expect(await labels("SELECT 'it''s' bo|dy FROM logs")).not.toBeNull();
  expect(await labels("-- bo|\nSELECT 1 FROM logs")).toBeNull();
});

test("attribute keys come from the table and column, with closing quotes", async () => {
  const sql = "SELECT resource_attributes['it'] FROM logs";
  const found = await completionsAt(sql, sql.indexOf("']"), schema, keysOf);
  const item = found!.items.find((each) => each.label === "it's")!;
  expect(sql.slice(0, found!.from) + item.text + sql.slice(found!.to)).toBe(
    "SELECT resource_attributes['it''s'] FROM logs",
  );
  expect(await labels("SELECT resource_attributes[| FROM spans")).toContain(
    "spans.resource_attributes",
  );
});

test("prefix matches come before substring matches", () => {
  const all = ["ab", "b", "ba"].map((label) => ({ label, text: label, hint: "" }));
  expect(rankMatches(all, "b").map((item) => item.label)).toEqual(["b", "ba", "ab"]);
});
