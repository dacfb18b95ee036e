import { expect, test } from "vitest";

import { engineSnippets } from "./engine_snippets";

const CATALOG = {
  name: "frazil",
  namespace: "frazil",
  type: "sql",
  properties: { uri: 'sqlite:////a"b/catalog.db', type: "sql" },
  spark: { "spark.sql.catalog.frazil.uri": "jdbc:sqlite:/it's here/catalog.db?a=1&b=2" },
  spark_packages: ["a:b:1", "c:d:2"],
};

test("settings are quoted per language", () => {
  const [python, spark, shell, duckdb] = engineSnippets(CATALOG, "logs", "file:///it's/v1.json");
  expect(python!.text).toContain(String.raw`"uri": "sqlite:////a\"b/catalog.db"`);
  expect(python!.text).toContain('load_table("frazil.logs")');
  expect(spark!.text).toContain('spark.table("frazil.frazil.logs")');
  expect(shell!.text).toContain(
    String.raw`--conf 'spark.sql.catalog.frazil.uri=jdbc:sqlite:/it'\''s here/catalog.db?a=1&b=2'`,
  );
  expect(shell!.text).toContain("--packages a:b:1,c:d:2 \\\n");
  expect(duckdb!.text).toContain("iceberg_scan('/it''s/v1.json')");
});
