import type { Status, Volume } from "../../lib/api/types.gen";

/** Whether any data has arrived, also before the last restart. */
export function hasData({ ingest, log, hot, lake }: Status): boolean {
  const isTelemetry = (topic: string) => topic.startsWith("otlp_");
  return (
    ingest.signals.some((signal) => signal.accepted_records > 0) ||
    log.topics.some(
      ({ topic, partitions }) =>
        isTelemetry(topic) && partitions.some((part) => part.durable_watermark > 0),
    ) ||
    Object.values(hot?.rows ?? {}).some((rows) => rows > 0) ||
    (lake?.tables ?? []).some((table) => table.rows > 0)
  );
}

/** The signal with the most records. */
export function firstSignal(volumes: readonly Volume[]): Volume | null {
  return volumes.toSorted((one, other) => other.row_count - one.row_count)[0] ?? null;
}

const WORDS = { logs: "log record", spans: "span", metrics: "metric point" };

/** "12 spans", "1 log record" */
export function formatAmount({ signal, row_count }: Volume): string {
  return `${row_count.toLocaleString("en")} ${WORDS[signal]}${row_count === 1 ? "" : "s"}`;
}
