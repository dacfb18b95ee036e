import { expect, test } from "vitest";

import type { TopicSummary } from "../../lib/api/types.gen";
import { produceSteps, retentionText, sqlOf } from "./topic_text";

const TOPIC: TopicSummary = {
  name: "orders",
  topic_id: null,
  kind: "topic",
  table: "topic_orders",
  partitions: 3,
  records: 30,
  bytes: 1000,
  cleanup_policy: "delete",
  retention_ms: 7 * 86_400_000,
  retention_bytes: null,
  newest_ms: null,
};

test("retention names every limit", () => {
  expect(retentionText(TOPIC)).toBe("7 d");
  expect(retentionText({ ...TOPIC, retention_bytes: 1024 })).toBe("7 d, 1 KiB");
  expect(retentionText({ ...TOPIC, retention_ms: null })).toBe("no limit");
  expect(retentionText({ ...TOPIC, cleanup_policy: "compact" })).toBe("latest per key");
});

test("only topics that are tables have a query", () => {
  expect(sqlOf(TOPIC)).toContain("FROM topic_orders");
  expect(sqlOf({ ...TOPIC, table: "logs", kind: "telemetry" })).toContain("SELECT *\nFROM logs");
  expect(sqlOf({ ...TOPIC, table: null })).toBeNull();
});

test("an IPv6 address has brackets", () => {
  expect(produceSteps("::1", 9092, "orders").at(-1)?.text).toBe("[::1]:9092");
});
