// Made by `python ui/answers.py` from the description of the API. Do not edit.

export interface Appended {
  table: string;
  covered: Covered[];
  row_count: number;
  dead_count: number;
  snapshot_id: number;
}

export interface Around {
  before: LogRow[];
  row: LogRow;
  after: LogRow[];
}

export interface Bar {
  time: string;
  severity: string;
  count: number;
}

export interface CatalogInfo {
  name: string;
  namespace: string;
  type: string;
  properties: Record<string, string>;
  spark: Record<string, string>;
  spark_packages: string[];
}

export interface Check {
  room: string;
  state: "degraded" | "failed" | "ok";
  why?: string | null;
  next_step?: string | null;
}

export interface CommitStatus {
  table: string;
  snapshot_id: number;
  snapshot: string;
  operation: string;
  added_rows: number | null;
  committed_ms: number;
  age_s: number;
}

export interface Covered {
  topic: string;
  partition: number;
  begin: number;
  end: number;
}

export interface Cursor {
  time_us: number;
  partition: number;
  offset: number;
  row: number;
}

export interface Dashboard {
  format: 1;
  title: string;
  description?: string;
  variables?: Variable[];
  panels?: Panel[];
}

export interface DashboardSummary {
  name: string;
  etag: string;
  title: string;
  description: string;
  panel_count: number;
  error: string | null;
}

export interface DashboardsAnswer {
  dashboards: DashboardSummary[];
}

export interface DemoRequest {
  seconds?: number;
  backfill_minutes?: number;
  rate?: number;
}

export interface DemoState {
  state: "idle" | "running" | "stopping";
  started_ms?: number | null;
  seconds?: number | null;
  backfill_minutes?: number | null;
  acknowledged?: Record<string, number> | null;
  trouble?: string | null;
  refusal?: string | null;
}

export interface DependenciesAnswer {
  dependencies: Dependency[];
}

export interface Dependency {
  caller: string;
  callee: string;
  is_linked: boolean;
  call_count: number;
  error_count: number;
  p95_nano: number;
  p99_nano: number;
}

export interface DoingStatus {
  work: string;
  step: string;
  table: string | null;
  begun_ms: number;
  age_s: number;
  task_count: number;
  log_bytes: number;
  done_bytes: number;
  done_rows: number;
}

export interface DurationsAnswer {
  step_s: number;
  dots: TraceDot[];
}

export interface ErrorAnswer {
  error: ErrorReason;
}

export interface ErrorReason {
  kind: string;
  message: string;
}

export interface Exemplar {
  time_unix_nano: number;
  value: number;
  trace_id: string;
  span_id: string;
  service_name: string;
  labels: Record<string, string>;
}

export interface ExemplarsAnswer {
  exemplars: Exemplar[];
}

export interface Facet {
  name: string;
  values: ([string | null, number])[];
}

export interface FacetsAnswer {
  total: number;
  facets: Facet[];
}

export interface Failure {
  service: string;
  operation: string;
  message: string | null;
  error_type: string | null;
  count: number;
  origin_count: number;
  last_trace_id: string;
}

export interface FailuresAnswer {
  failures: Failure[];
}

export interface FieldsAnswer {
  fields: NamedField[];
}

export interface FileSizes {
  bytes_min: number;
  files: number;
}

export interface FindAnswer {
  span_ids: string[];
}

export interface Flushed {
  commits: Appended[];
}

export interface HealthAnswer {
  is_ready: boolean;
  checks: Check[];
}

export interface HistogramAnswer {
  step_s: number;
  bars: Bar[];
}

export interface HotStatus {
  is_whole: boolean;
  lag_offsets: number;
  memory_bytes: number;
  memory_bytes_max: number;
  disk_bytes: number;
  disk_bytes_max: number;
  rows: Record<string, number>;
  trouble: string | null;
}

export interface IngestStatus {
  grpc_port: number;
  http_port: number;
  is_open: boolean;
  why_closed: string | null;
  in_flight_requests: number;
  in_flight_bytes: number;
  needs_token: boolean;
  is_tls: boolean;
  acknowledging: Timing | null;
  signals: SignalStatus[];
  transports: TransportStatus[];
  refusals: Record<string, number>;
}

export interface Label {
  name: string;
  values: [string, number][];
}

export interface LabelsAnswer {
  labels: Label[];
}

export interface LakeAnswer {
  why_absent: string | null;
  trouble: string | null;
  spark: string | null;
  flush_age_ms: number | null;
  catalog: CatalogInfo | null;
  tables: LakeTable[];
}

export interface LakeColumn {
  id: number;
  name: string;
  type: string;
  required: boolean;
  doc: string | null;
}

export interface LakeFile {
  path: string;
  partition: string;
  rows: number;
  bytes: number;
  time_min_us: number | null;
  time_max_us: number | null;
}

export interface LakePartition {
  partition: string;
  files: number;
  small_files: number;
  rows: number;
  bytes: number;
}

export interface LakeSchema {
  schema_id: number;
  is_current: boolean;
  first_used_ms: number | null;
  columns: LakeColumn[];
  added: string[];
  dropped: string[];
}

export interface LakeSnapshot {
  snapshot_id: string;
  parent_id: string | null;
  committed_ms: number;
  operation: string;
  schema_id: number | null;
  is_current: boolean;
  is_current_line: boolean;
  tags: string[];
  added_rows: number | null;
  total_rows: number | null;
  total_files: number | null;
  summary: Record<string, string>;
}

export interface LakeStatus {
  spark: SparkStatus;
  lag_bytes: number | null;
  lag_age_s: number | null;
  flush_bytes: number;
  flush_age_ms: number;
  doing: DoingStatus | null;
  last_commit: CommitStatus | null;
  commits: CommitStatus[];
  tables: TableStatus[];
  trouble: string | null;
  given_up: string | null;
}

export interface LakeTable {
  name: string;
  rows: number;
  files: number;
  small_files: number;
  bytes: number;
  snapshots: number;
  snapshot_id: string | null;
  committed_ms: number | null;
  reaches: Reach[];
  lag_offsets: number;
  lag_bytes: number;
  refusal: string | null;
}

export interface LakeTableAnswer {
  table: LakeTable;
  location: string;
  metadata_location: string;
  uuid: string;
  format_version: number;
  partitioned_by: string[];
  sorted_by: string[];
  properties: Record<string, string>;
  snapshots: LakeSnapshot[];
  schemas: LakeSchema[];
  partition_count: number;
  partitions: LakePartition[];
  sizes: FileSizes[];
  file_count: number;
  files: LakeFile[];
}

export interface Latency {
  service: string;
  operation: string;
  span_count: number;
  error_count: number;
  p50_nano: number;
  p90_nano: number;
  p99_nano: number;
  max_nano: number;
}

export interface Line {
  span: Record<string, unknown>;
  depth: number;
  offset_nano: number;
  duration_nano: number;
  self_nano: number;
  critical_nano: number;
  is_critical: boolean;
  is_orphan: boolean;
}

export interface LogRow {
  place: Cursor;
  cursor: string;
  time: string;
  time_unix_nano: number;
  observed_time_unix_nano: number;
  service_name: string;
  severity: string;
  severity_number: number;
  severity_text: string | null;
  event_name: string | null;
  body: string | null;
  body_type: string;
  trace_id: string | null;
  span_id: string | null;
  flags: number;
  attributes: Record<string, string>;
  resource_attributes: Record<string, string>;
  scope_name: string | null;
  scope_version: string | null;
  scope_attributes: Record<string, string>;
}

export interface LogStatus {
  used_bytes: number;
  bytes_max: number;
  is_full: boolean;
  when_full: string;
  queue_batches: number;
  queue_bytes: number;
  syncing: Timing | null;
  topics: TopicStatus[];
}

export interface LogsAnswer {
  logs: LogRow[];
  cursor: string | null;
}

export interface Maintained {
  table: string;
  files_joined?: number;
  files_made?: number;
  bytes_joined?: number;
  bytes_made?: number;
  manifests_joined?: number;
  tags_made?: string[];
  tags_dropped?: string[];
  snapshots_expired?: number;
  files_removed?: number;
  orphans_removed?: number;
  orphan_bytes?: number;
  trouble?: string[];
}

export interface Metric {
  name: string;
  type: string;
  unit: string | null;
  description: string | null;
  temporality: string | null;
  is_monotonic: boolean | null;
  services: string[];
  point_count: number;
  newest: string;
}

export interface MetricsAnswer {
  metrics: Metric[];
}

export interface NamedField {
  name: string;
  kind: "attribute" | "column" | "resource" | "scope";
  count: number | null;
}

export interface OperationsAnswer {
  operations: Latency[];
}

export interface Outline {
  trace_id: string;
  span_count: number;
  is_cut: boolean;
  begin: string;
  duration_nano: number;
  services: string[];
  names: string[];
  kinds: string[];
  span_id: string[];
  parent: number[];
  service: number[];
  name: number[];
  kind: number[];
  offset_nano: number[];
  length_nano: number[];
  self_nano: number[];
  failed: number[];
  orphans: number[];
  critical: number[];
}

export interface Pages {
  count: number;
  every: number;
  cursors: string[];
  is_cut: boolean;
}

export interface Panel {
  id: string;
  title?: string;
  kind: "logs" | "series" | "stat" | "table" | "top";
  x: number;
  y: number;
  w: number;
  h: number;
  metric?: PanelMetric | null;
  sql?: string;
  logs?: PanelLogs | null;
  unit?: string;
  look?: "bars" | "lines" | "stacked";
  reduce?: "avg" | "last" | "max" | "min" | "sum";
  limit?: number;
}

export interface PanelLogs {
  search?: string;
  severity?: string;
  filter?: string[];
  exclude?: string[];
}

export interface PanelMetric {
  name: string;
  type?: string;
  aggregates: string[];
  by?: string[];
  filter?: string[];
  exclude?: string[];
  step?: string;
}

export interface PartitionStatus {
  partition: number;
  start_offset: number;
  durable_watermark: number;
  hot_watermark: number | null;
  hot_lag_offsets: number | null;
  lake_watermark: number | null;
  lake_lag_offsets: number | null;
  lake_lag_bytes: number | null;
  log_bytes: number;
  log_segments: number;
}

export interface QueryAnswer {
  sql: string | null;
  error: WrongQuery | null;
}

export interface QueryStatus {
  queries_per_s: number;
  answering: Timing | null;
}

export interface Rate {
  signal: string;
  requests_per_s: number;
  records_per_s: number;
  bytes_per_s: number;
}

export interface Reach {
  topic: string;
  partition: number;
  lake_watermark: number;
  durable_watermark: number;
  lag_bytes: number;
}

export interface Series {
  labels: Record<string, string | null>;
  values: [string, number][];
}

export interface SeriesAnswer {
  metric_type: string | null;
  unit: string | null;
  series: Series[];
  is_cut: boolean;
}

export interface Service {
  name: string;
  last_seen: string;
  span_count?: number;
  error_count?: number;
  p50_nano?: number | null;
  p95_nano?: number | null;
  p99_nano?: number | null;
  log_count?: number;
  error_log_count?: number;
  point_count?: number;
}

export interface ServiceSeriesAnswer {
  step_s: number;
  steps: ServiceStep[];
}

export interface ServiceShare {
  service: string;
  span_count: number;
  error_count: number;
}

export interface ServiceStep {
  service: string;
  time: string;
  span_count: number;
  error_count: number;
  p95_nano: number;
}

export interface ServicesAnswer {
  services: Service[];
}

export interface SignalStatus {
  signal: string;
  accepted_requests: number;
  accepted_records: number;
  accepted_bytes: number;
  duplicate_requests: number;
  refused_requests: number;
  refused_records: number;
}

export interface Snapshots {
  snapshots: Record<string, unknown>[];
}

export interface SpanAnswer {
  span: Record<string, unknown>;
  event_offset_nano: number[];
}

export interface SparkStatus {
  state: string;
  pid: number | null;
  trouble: string | null;
}

export interface SqlAnswer {
  columns: string[];
  rows: unknown[][];
  types?: string[] | null;
  is_cut?: boolean | null;
  parts?: TableScan[] | null;
}

export interface SqlRequest {
  sql: string;
  format?: "arrow" | "csv" | "json" | "parquet" | null;
  engine?: "spark" | null;
  timeout_ms?: number | null;
  rows_max?: number | null;
  memory_bytes_max?: number | null;
  details?: boolean;
  parts?: boolean;
}

export interface Status {
  version: string;
  pid: number;
  state: "running" | "starting" | "stopping";
  started_ms: number;
  uptime_s: number;
  data: string;
  ingest: IngestStatus;
  rates_window_s: number;
  rates: Rate[];
  log: LogStatus;
  hot: HotStatus | null;
  lake: LakeStatus | null;
  query: QueryStatus | null;
  subscribers: SubscriberStatus[];
}

export interface StoredDashboard {
  name: string;
  etag: string;
  dashboard: Dashboard | null;
  error?: string | null;
}

export interface SubscriberStatus {
  subscriber: string;
  topic: string;
  lag_offsets: number;
  in_flight_batches: number;
}

export interface TableScan {
  table: string;
  hot_rows: number;
  hot_bytes: number;
  hot_pieces: number;
  hot_pieces_all: number;
  lake_rows: number;
  lake_bytes: number;
  lake_files: number;
  lake_files_all: number;
  rows_all: number;
  snapshots: string[];
  skipped: Record<string, number>;
}

export interface TableStatus {
  table: string;
  snapshot_id: number | null;
  rows: number;
  files: number;
  small_files: number;
  bytes: number;
}

export interface Tidied {
  tables: Maintained[];
}

export interface Timing {
  count: number;
  p50_ms: number;
  p99_ms: number;
}

export interface TopicStatus {
  topic: string;
  partitions: PartitionStatus[];
}

export interface TraceAnswer {
  trace_id: string;
  span_count: number;
  is_cut: boolean;
  lines: Line[];
  logs: LogRow[];
}

export interface TraceDot {
  trace_id: string;
  time: string;
  duration_nano: number;
  root_service: string | null;
  root_name: string | null;
  is_failed: boolean;
  trace_count: number;
}

export interface TraceSummary {
  trace_id: string;
  root_service: string;
  root_name: string;
  start_unix_nano: number;
  start: string;
  duration_nano: number;
  span_count: number;
  error_count: number;
  services: string[];
  shares: ServiceShare[];
  cursor: string;
}

export interface TracesAnswer {
  traces: TraceSummary[];
  cursor: string | null;
}

export interface TransportStatus {
  transport: string;
  accepted_requests: number;
  refused_requests: number;
}

export interface Variable {
  name: string;
  label?: string;
  kind: "label" | "list" | "sql";
  metric?: string;
  of?: string;
  sql?: string;
  values?: string[];
  many?: boolean;
  chosen?: string[];
}

export interface Volume {
  service: string;
  signal: "logs" | "metrics" | "spans";
  row_count: number;
  time?: string | null;
}

export interface VolumesAnswer {
  volumes: Volume[];
}

export interface Welcome {
  name?: string;
  about?: string;
  openapi?: string;
  sql?: string;
  status?: string;
  ready?: string;
}

export interface WrongQuery {
  message: string;
  begin: number;
  end: number;
}
