import { expect, test } from "vitest";

import { isStatement } from "./doors";

test.each([
  "CREATE VIEW v AS SELECT 1",
  "-- why\ncreate or replace view v as select 1",
  "/* x */ ; DROP VIEW v",
  "COPY INTO t FROM @s",
  "SHOW VIEWS",
  "show external tables",
  "DESCRIBE @s/2026/",
  "DESC '@s/with spaces/'",
  "LIST @s",
  "INSERT INTO t VALUES (1)",
  "upsert into t select 1",
  "UPDATE t SET a = 1",
  "DELETE FROM t",
  "SHOW KEYED TABLES",
])("%s is a statement", (text) => expect(isStatement(text)).toBe(true));

test.each([
  "SELECT 1",
  "WITH a AS (SELECT 1) SELECT * FROM a",
  "EXPLAIN SELECT 1",
  "SHOW TABLES",
  "DESCRIBE logs",
  "'CREATE VIEW'",
  '"create" view',
  "/* CREATE VIEW */ SELECT 1",
  "",
])("%s is a query", (text) => expect(isStatement(text)).toBe(false));
