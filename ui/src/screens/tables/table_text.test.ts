import { expect, test } from "vitest";

import type { KeyedTableStatus, TableAnswer } from "../../lib/api/types.gen";
import { createText, keyCondition, selectText, sqlName, watermark } from "./table_text";

const PART = { partition: 0, written: 10, indexed: 8, first: 0, sealed: 0, iceberg: null };
const STATUS: KeyedTableStatus = { table: "Orders", state: "ok", partitions: [PART] };
const TABLE: TableAnswer = {
  table: "Orders",
  columns: [
    { name: "region", type: "string", nullable: false },
    { name: "id", type: "int64", nullable: false },
    { name: "order", type: "decimal(10,2)", nullable: false },
    { name: "at", type: "timestamptz" },
  ],
  key: ["region", "id"],
  partitions: 3,
  version: 0,
  topic: "__table_Orders",
  status: STATUS,
};

test("a watermark adds up partitions, and tells how far behind it is", () => {
  const two = { ...STATUS, partitions: [PART, { ...PART, partition: 1, iceberg: 4 }] };
  expect(watermark(two, "indexed")).toMatchObject({ offset: 16, lag: 4 });
  expect(watermark(two, "iceberg")).toMatchObject({ offset: 4, lag: 16 });
  expect(watermark(STATUS, "iceberg")).toBeNull();
  expect(watermark({ table: "t", state: "failed" }, "written")).toBeNull();
});

test("names are quoted where SQL needs it", () => {
  expect(["id", "order", "Orders", "a_1"].map(sqlName)).toEqual([
    "id",
    '"order"',
    '"Orders"',
    "a_1",
  ]);
});

test("a query of a row has its key, in the types of the columns", () => {
  expect(selectText(TABLE, ["it's", "9007199254740993"], 100)).toBe(
    `SELECT *\nFROM "Orders"\nWHERE region = 'it''s' AND id = 9007199254740993`,
  );
  expect(selectText(TABLE, null, 100)).toBe('SELECT *\nFROM "Orders"\nLIMIT 100');
});

test("what is no value of its type does not become SQL", () => {
  const [id] = TABLE.columns.slice(1);
  expect(keyCondition([id!], ["1 OR true"])).toBeNull();
  expect(selectText(TABLE, ["a", "1 OR true"], 5)).toContain("LIMIT 5");
});

test("a definition is a statement", () => {
  expect(createText(TABLE)).toBe(
    [
      'CREATE TABLE "Orders" (',
      "  region VARCHAR,",
      "  id BIGINT,",
      '  "order" DECIMAL(10, 2) NOT NULL,',
      "  at TIMESTAMPTZ,",
      "  PRIMARY KEY (region, id)",
      ") PARTITIONS 3",
    ].join("\n"),
  );
});
