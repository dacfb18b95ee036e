import fc from "fast-check";
import { expect, test } from "vitest";

import type { ColumnBody, TableAnswer } from "../../lib/api/types.gen";
import { parsedJson } from "../../lib/format/json";
import { keyFields, keyOfRow, keyText } from "./key_text";
import { type ChangeRow, currentRow, previewText, versionsOf } from "./versions";
import { writeSnippets } from "./write_snippets";

const ID: ColumnBody = { name: "id", type: "int64", nullable: false };
const REGION: ColumnBody = { name: "region", type: "string", nullable: false };
const TOTAL: ColumnBody = { name: "total", type: "decimal(10,2)" };
const BIG = "9007199254740993";

test("keys survive the address, with all digits", () => {
  const value = fc.oneof(fc.string(), fc.constantFrom(BIG, "-1", "null", "[1]", '"'));
  fc.assert(
    fc.property(fc.tuple(value, value), (fields) => {
      expect(keyFields([REGION, ID], keyText([REGION, ID], fields))).toEqual(fields);
      expect(keyFields([REGION], keyText([REGION], [fields[0]]))).toEqual([fields[0]]);
    }),
  );
  expect(keyText([REGION, ID], ["eu", BIG])).toBe(`["eu",${BIG}]`);
  expect(keyText([REGION, ID], ["1", "x"])).toBe('["1","x"]');
  for (const text of ["", "1", "[1]", "{}", "["]) {
    expect(keyFields([REGION, ID], text)).toEqual(["", ""]);
  }
});

test("the key of a row is one that finds it", () => {
  const row = parsedJson(`{"id": ${BIG}, "region": "eu", "total": "1.50"}`) as ChangeRow;
  expect(keyOfRow([ID], row)).toBe(BIG);
  expect(keyOfRow([REGION, ID], row)).toBe(`["eu",${BIG}]`);
});

function change(_change: ChangeRow["_change"], _offset: number, total: string | null): ChangeRow {
  return { _change, _offset, _time: null, _by: null, id: 1, total };
}

test("an update shows what it changed; an insert and a deletion change everything", () => {
  const changes = [
    change("insert", 0, "1.00"),
    change("update", 1, "2.00"),
    change("update", 2, "2.00"),
    change("delete", 3, "2.00"),
    change("insert", 4, "3.00"),
  ];
  const versions = versionsOf([ID, TOTAL], changes);
  expect(versions.map(({ row }) => row._offset)).toEqual([4, 3, 2, 1, 0]);
  expect(versions.map(({ before }) => [...before])).toEqual([[], [], [], [["total", "1.00"]], []]);
  expect(currentRow(changes)).toBe(changes[4]);
  expect(currentRow(changes.slice(0, 4))).toBeNull();
  expect(currentRow([])).toBeNull();
  expect(previewText([ID, TOTAL], ["id"], change("insert", 0, null))).toBe("total: null");
});

const TABLE: TableAnswer = {
  table: "orders",
  columns: [ID, REGION, TOTAL, { name: "user", type: "timestamptz" }],
  key: ["region", "id"],
  partitions: 1,
  version: 0,
  topic: "__table_orders",
  status: { table: "orders", state: "ok" },
};

test("snippets have the columns of the table, in the words of each language", () => {
  const [shell, python, put, update, remove] = writeSnippets("http://[::1]:4320/", TABLE).map(
    ({ text }) => text,
  );
  expect(shell).toContain("curl 'http://[::1]:4320/api/v1/tables/orders/rows'");
  expect(shell).toContain('{"region": "text", "id": 1, "total": "1", "user": "2026-01-31T12');
  expect(shell).toContain(`?operation=delete`);
  expect(python).toContain('frazil.connect("http://[::1]:4320")');
  expect(python).toContain("from decimal import Decimal");
  expect(python).toContain('table.get(("text", 1))');
  expect(put).toContain('UPSERT INTO orders (region, id, total, "user")');
  expect(update).toContain("SET total = 1\nWHERE region = 'text' AND id = 1");
  expect(remove).toBe("DELETE FROM orders\nWHERE region = 'text' AND id = 1");
});

test("a table of nothing but its key cannot be updated", () => {
  const texts = writeSnippets("http://x/", { ...TABLE, columns: [ID], key: ["id"] });
  expect(texts.some(({ text }) => text.includes("UPDATE"))).toBe(false);
  expect(texts[1]?.text).not.toContain("update");
});
