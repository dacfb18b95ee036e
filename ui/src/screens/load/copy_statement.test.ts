import { expect, test } from "vitest";

import { checkStatement, copyStatement, type CopyForm, tableFor } from "./copy_statement";

const FORM: CopyForm = {
  table: "orders",
  stage: "s",
  file: "2026/a.csv",
  wholeFolder: false,
  columns: [
    { name: "id", type: "" },
    { name: "Order No", type: "" },
  ],
  format: "",
  onError: "ABORT",
  addColumns: false,
  force: false,
  purge: false,
};

test("only what was chosen is written", () => {
  expect(copyStatement(FORM)).toBe("COPY INTO orders\nFROM @s FILES=('2026/a.csv')");
  expect(
    copyStatement({ ...FORM, wholeFolder: true, format: "CSV", onError: "CONTINUE", force: true }),
  ).toBe("COPY INTO orders\nFROM @s/2026/\nFILE_FORMAT=(TYPE=CSV)\nON_ERROR=CONTINUE FORCE=true");
});

test("names and paths are quoted", () => {
  const columns = [
    { name: "id", type: "BIGINT" },
    { name: 'a "b', type: "" },
  ];
  expect(copyStatement({ ...FORM, table: "Or-ders", file: "it's/x y.csv", columns })).toBe(
    `COPY INTO "Or-ders" (id BIGINT, "a ""b")\nFROM @s FILES=('it''s/x y.csv')`,
  );
  expect(copyStatement({ ...FORM, file: "with space/x.csv", wholeFolder: true })).toContain(
    "FROM '@s/with space/'",
  );
});

test("a check never deletes files", () => {
  const text = checkStatement({ ...FORM, purge: true });
  expect(text).not.toContain("PURGE");
  expect(text).toContain("VALIDATION_MODE=RETURN_ERRORS");
});

test("a table gets its name from the file", () => {
  expect(tableFor("2026/Orders-1.csv.gz")).toBe("orders_1");
  expect(tableFor("2026-01.parquet")).toBe("t_2026_01");
});
