/** Figures and links of a topic. */

import type { TopicSummary } from "../../lib/api/types.gen";
import * as format from "../../lib/format/format";

/** How long records stay, as `7 d, 1 GiB`. */
export function retentionText(topic: TopicSummary): string {
  if (topic.cleanup_policy === "compact") return "latest per key";
  const limits: string[] = [];
  if (topic.retention_ms !== null) limits.push(format.duration(topic.retention_ms * 1e6));
  if (topic.retention_bytes !== null) limits.push(format.bytes(topic.retention_bytes));
  return limits.join(", ") || "no limit";
}

/** How long ago a time was; timestamps are the producer's, and may be in the future. */
export function ageText(ms: number | null): string {
  return ms === null ? "–" : format.ago(Math.max(0, Date.now() - ms) / 1000);
}

/** A query over the records of a topic; null if it is no table. */
export function sqlOf(topic: TopicSummary): string | null {
  if (topic.table === null) return null;
  if (topic.kind === "telemetry") return `SELECT *\nFROM ${topic.table}\nLIMIT 100`;
  return [
    "SELECT _log_partition, _offset, time,",
    "  TRY_CAST(key AS VARCHAR) AS key, TRY_CAST(value AS VARCHAR) AS value",
    `FROM ${topic.table}`,
    "ORDER BY time DESC",
    "LIMIT 100",
  ].join("\n");
}

/** How to write the first message: commands, and the address for any client. */
export function produceSteps(
  host: string,
  port: number,
  topic: string,
): readonly { readonly says: string; readonly text: string }[] {
  const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return [
    {
      says: "From the command line",
      text: `echo '17:{"total": 30}' | frazil produce ${topic} --brokers ${address} --key-separator :`,
    },
    {
      says: "From Python, with confluent-kafka",
      text: [
        "from confluent_kafka import Producer",
        "",
        `producer = Producer({"bootstrap.servers": "${address}"})`,
        `producer.produce("${topic}", key="17", value='{"total": 30}')`,
        "producer.flush()",
      ].join("\n"),
    },
    { says: "Any other Kafka client: bootstrap.servers", text: address },
  ];
}
