/** Boxes and flows of the pipeline diagram, derived from the node's status. */

import type { Check, HealthAnswer, LakeStatus, Status, Timing } from "../../lib/api/types.gen";
import { escapeText, truncate } from "../../lib/format/escape";
import * as format from "../../lib/format/format";
import { increasePerSecond, type Sample } from "../../lib/state/samples";
import type { HealthState } from "../../components/health";

export type BoxName = "ingest" | "log" | "hot" | "query" | "spark" | "tables" | "subscribers";

export interface Fact {
  readonly name: string;
  readonly value: string;
  /** Share of a limit, 0 to 1; drawn as a bar. */
  readonly share?: number | null;
  /** Whether reaching the limit is normal. */
  readonly isExpected?: boolean;
  /** Name of the samples drawn as a sparkline. */
  readonly trend?: string;
  /** Two durations leave no space for a sparkline. */
  readonly isTiming?: boolean;
  readonly title?: string;
}

export interface Box {
  readonly name: BoxName;
  readonly title: string;
  readonly state: HealthState;
  readonly why: string | null;
  readonly next: string | null;
  readonly facts: readonly Fact[];
}

export interface Flow {
  readonly from: BoxName;
  readonly to: BoxName;
  /** Null if unknown. */
  readonly perSecond: number | null;
  readonly label: string;
}

/** Letters of a group's name in a box. */
const GROUP_MAX = 20;
const MINUTE_MS = 60_000;
const WINDOW_MS = 10_000;

export function boxesOf(status: Status, health: HealthAnswer): Record<BoxName, Box> {
  const checkOf = (room: string) => health.checks.find((check) => check.component === room);
  const box = (
    name: BoxName,
    title: string,
    check: Check | undefined,
    facts: readonly Fact[],
  ): Box => ({
    name,
    title,
    state: check?.state ?? "ok",
    why: isWell(check) ? null : (check?.why ?? null),
    next: check?.next_step ?? null,
    facts,
  });
  const off = (name: BoxName, title: string, why: string, next: string): Box => ({
    name,
    title,
    state: "off",
    why,
    next,
    facts: [],
  });
  const { hot, lake, query } = status;
  const hotOff = "hot.enabled is false, so rows cannot be queried.";
  const hotNext = "Start the node with --set hot.enabled=true.";
  const lakeOff = "lake.enabled is false, or the extra is not installed. The log keeps everything.";
  const lakeNext = "Run pip install 'frazil[lake]', then start the node with lake.enabled=true.";
  const lakeCheck = checkOf("lake");
  return {
    ingest: box("ingest", "OTLP in", checkOf("ingest"), ingestFacts(status)),
    log: box("log", "Log", checkOf("log"), logFacts(status)),
    hot: hot
      ? box("hot", "Hot tier", checkOf("hot"), hotFacts(hot))
      : off("hot", "Hot tier", hotOff, hotNext),
    query: query
      ? box("query", "Queries", checkOf("query"), [
          { name: "rate", value: perSecond(query.queries_per_s), trend: "queries_per_s" },
          timing("latency p50 · p99", query.answering, "answer_ms"),
        ])
      : off("query", "Queries", hotOff, hotNext),
    spark: lake
      ? box("spark", "Spark", lakeCheck, sparkFacts(lake))
      : off("spark", "Spark", lakeOff, lakeNext),
    // A problem of the lake is shown once.
    tables: lake
      ? {
          ...box("tables", "Iceberg tables", undefined, tableFacts(lake)),
          state: lakeCheck?.state ?? "ok",
        }
      : off("tables", "Iceberg tables", lakeOff, lakeNext),
    subscribers: box("subscribers", "Subscribers", undefined, subscriberFacts(status)),
  };
}

export function flowsOf(status: Status, samples: readonly Sample[]): Flow[] {
  const rows = status.rates.reduce((total, rate) => total + rate.records_per_s, 0);
  const bytes = status.rates.reduce((total, rate) => total + rate.bytes_per_s, 0);
  const toHot = increasePerSecond(samples, "hot_offset", WINDOW_MS);
  const toLake = increasePerSecond(samples, "lake_offset", MINUTE_MS);
  const frozen = increasePerSecond(samples, "lake_rows", MINUTE_MS);
  const flow = (from: BoxName, to: BoxName, speed: number | null, label: string): Flow => ({
    from,
    to,
    perSecond: speed,
    label,
  });
  const flows = [
    flow("ingest", "log", rows, `${format.figure(rows)} rows/s\n${format.bytes(bytes)}/s`),
    flow("log", "subscribers", 0, ""),
  ];
  if (status.hot) flows.push(flow("log", "hot", toHot, `${known(toHot)} requests/s`));
  if (status.query) {
    const asked = status.query.queries_per_s;
    flows.push(flow("hot", "query", asked, `${format.figure(asked)} queries/s`));
  }
  if (status.lake) {
    flows.push(flow("log", "spark", toLake, `${known(toLake)} requests/s`));
    flows.push(flow("spark", "tables", frozen, `${known(frozen)} rows/s`));
    if (status.query) flows.push(flow("tables", "query", 0, ""));
  }
  return flows;
}

/** Line width: grows with each power of ten. */
export function widthOf(perSecond: number | null): number {
  if (!perSecond || perSecond <= 0) return 1.5;
  return Math.min(9, 2 + 1.6 * Math.log10(1 + perSecond));
}

function isWell(check: Check | undefined): boolean {
  return !check || check.state === "ok";
}

function ingestFacts({ ingest, rates }: Status): Fact[] {
  const refused = ingest.signals.reduce((total, signal) => total + signal.refused_requests, 0);
  return [
    ...rates.map((rate) => ({
      name: rate.signal,
      value: `${format.figure(rate.records_per_s)} rows/s`,
      trend: `rows_per_s.${rate.signal}`,
      title: `${format.bytes(rate.bytes_per_s)}/s in ${format.figure(rate.requests_per_s)} requests/s`,
    })),
    timing("ack p50 · p99", ingest.acknowledging, "acknowledge_ms"),
    {
      name: "in flight",
      value: `${ingest.in_flight_requests}, ${format.bytes(ingest.in_flight_bytes)}`,
    },
    ...ingest.transports.map((each) => ({
      name: `${each.transport === "grpc" ? "gRPC" : "HTTP"}, port ${each.transport === "grpc" ? ingest.grpc_port : ingest.http_port}`,
      value: `${format.short(each.accepted_requests)} requests`,
    })),
    { name: "refused", value: `${format.count(refused)} requests` },
  ];
}

function logFacts({ log }: Status): Fact[] {
  const partitions = log.topics.reduce((total, topic) => total + topic.partitions.length, 0);
  return [
    {
      name: "on disk",
      value: `${format.bytes(log.used_bytes)} of ${format.bytes(log.bytes_max)}`,
      share: log.used_bytes / log.bytes_max,
    },
    timing("sync p50 · p99", log.syncing, "sync_ms"),
    { name: "queue", value: `${log.queue_batches}, ${format.bytes(log.queue_bytes)}` },
    { name: "topics", value: `${log.topics.length}, ${partitions} partitions` },
    { name: "when full", value: log.when_full },
  ];
}

function hotFacts(hot: NonNullable<Status["hot"]>): Fact[] {
  const rows = Object.values(hot.rows).reduce((total, each) => total + each, 0);
  return [
    {
      name: "memory",
      value: `${format.bytes(hot.memory_bytes)} of ${format.bytes(hot.memory_bytes_max)}`,
      share: hot.memory_bytes / hot.memory_bytes_max,
    },
    {
      name: "disk",
      value: `${format.bytes(hot.disk_bytes)} of ${format.bytes(hot.disk_bytes_max)}`,
      share: hot.disk_bytes / hot.disk_bytes_max,
    },
    { name: "rows", value: format.short(rows) },
    { name: "lag, requests", value: format.count(hot.lag_offsets) },
  ];
}

function sparkFacts(lake: LakeStatus): Fact[] {
  const { spark } = lake;
  const state = spark.state.replaceAll("_", " ");
  const age = lake.lag_age_s;
  return [
    { name: "process", value: spark.pid === null ? state : `${state}, pid ${spark.pid}` },
    {
      name: "lag",
      value: `${format.bytes(lake.lag_bytes)} of ${format.bytes(lake.flush_bytes)}`,
      share: lake.lag_bytes === null ? null : lake.lag_bytes / lake.flush_bytes,
      isExpected: true,
      title: "Acknowledged, not committed yet. A commit starts when either limit is reached.",
    },
    {
      name: "oldest",
      value: `${age === null ? "none" : format.duration(age * 1e9)} of ${format.duration(lake.flush_age_ms * 1e6)}`,
      share: age === null ? 0 : (age * 1000) / lake.flush_age_ms,
      isExpected: true,
    },
    { name: "now", value: progressText(lake) },
  ];
}

/** Progress of a lake job in words. */
export function progressText({ doing, spark }: LakeStatus): string {
  if (spark.state === "starting") return "starting Spark";
  if (!doing) return "idle";
  const about = doing.table ? ` (${doing.table})` : "";
  const much = doing.log_bytes
    ? `, ${format.bytes(doing.done_bytes)} of ${format.bytes(doing.log_bytes)}`
    : "";
  return `${doing.step}${about}${much}, for ${format.duration(doing.age_s * 1e9)}`;
}

function tableFacts(lake: LakeStatus): Fact[] {
  const sum = (of: (table: LakeStatus["tables"][number]) => number) =>
    lake.tables.reduce((total, table) => total + of(table), 0);
  const files = sum((table) => table.files);
  const last = lake.last_commit;
  return [
    { name: "rows", value: format.short(sum((table) => table.rows)), trend: "lake_rows" },
    {
      name: "files",
      value: `${format.count(files)}, ${format.count(sum((table) => table.small_files))} small`,
      title: "Maintenance compacts small files once there are enough.",
    },
    {
      name: "size",
      value: `${format.bytes(sum((table) => table.bytes))}${files ? `, ${format.bytes(sum((table) => table.bytes) / files)} per file` : ""}`,
    },
    {
      name: "last commit",
      value: last ? `${last.table}, ${format.ago(last.age_s)}` : "none yet",
    },
  ];
}

function subscriberFacts({ subscribers, kafka }: Status): Fact[] {
  const others = subscribers.filter((each) => !isHotTierSubscriber(each.subscriber));
  const slowest = others.toSorted((one, other) => other.lag_offsets - one.lag_offsets)[0];
  return [
    { name: "subscribers", value: format.count(others.length) },
    {
      name: "highest lag",
      value: slowest ? `${slowest.subscriber}, ${format.count(slowest.lag_offsets)}` : "none",
    },
    ...groupFacts(kafka),
  ];
}

/** Consumer groups of the Kafka port; the one with the largest lag is the first. */
function groupFacts(kafka: Status["kafka"]): Fact[] {
  if (!kafka?.group_count) return [];
  const [slowest] = kafka.groups;
  return [
    { name: "consumer groups", value: format.count(kafka.group_count) },
    {
      name: "group lag",
      title: "Of the consumer group that is furthest behind",
      value: slowest
        ? `${truncate(escapeText(slowest.group), GROUP_MAX)}, ${format.count(slowest.lag_offsets)}`
        : "none",
    },
  ];
}

/** Whether a subscriber is one of the hot tier's. */
export function isHotTierSubscriber(subscriber: string): boolean {
  return subscriber.startsWith("hot_");
}

function timing(name: string, took: Timing | null, trend: string): Fact {
  return {
    name,
    value: took
      ? `${format.duration(took.p50_ms * 1e6)} · ${format.duration(took.p99_ms * 1e6)}`
      : "–",
    trend,
    isTiming: true,
    title: "p50 and p99 of the last 10 seconds",
  };
}

function perSecond(value: number): string {
  return `${format.figure(value)}/s`;
}

function known(value: number | null): string {
  return value === null ? "…" : format.figure(value);
}
