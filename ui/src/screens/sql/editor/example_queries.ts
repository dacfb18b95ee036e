/** Example queries for an empty editor. */

export interface ExampleQuery {
  readonly name: string;
  readonly sql: string;
}

export const EXAMPLES: readonly ExampleQuery[] = [
  {
    name: "Latest warnings and errors",
    sql: `SELECT time, service_name, severity_text, body, trace_id, span_id
FROM logs
WHERE severity_number >= 13 AND time > now() - INTERVAL '1 hour'
ORDER BY time DESC
LIMIT 200`,
  },
  {
    name: "Requests and errors per minute",
    sql: `SELECT time_bucket('1 minute', time) AS minute, service_name, count(*) AS requests,
       count(*) FILTER (WHERE status_code = 'ERROR') AS errors
FROM entry_spans
WHERE time > now() - INTERVAL '1 hour'
GROUP BY minute, service_name
ORDER BY minute`,
  },
  {
    name: "Slowest operations",
    sql: `SELECT service_name, name, count(*) AS requests,
       round(percentile(duration_nano, 0.5) / 1e6, 1) AS p50_ms,
       round(percentile(duration_nano, 0.99) / 1e6, 1) AS p99_ms
FROM entry_spans
WHERE time > now() - INTERVAL '1 hour'
GROUP BY service_name, name
ORDER BY p99_ms DESC
LIMIT 50`,
  },
  {
    name: "Routes and their status codes",
    sql: `SELECT attributes['http.route'] AS route,
       attributes['http.response.status_code'] AS status, count(*) AS answers
FROM spans
WHERE attributes['http.route'] IS NOT NULL
GROUP BY 1, 2
ORDER BY answers DESC`,
  },
  {
    name: "Text search in logs",
    sql: `SELECT time, service_name, body
FROM logs
WHERE matches(body, 'timeout OR refused OR "out of stock"')
ORDER BY time DESC
LIMIT 100`,
  },
  {
    name: "Attribute keys",
    sql: `SELECT key, count(*) AS spans, approx_distinct(value) AS different
FROM (SELECT unnest(map_keys(attributes)) AS key, unnest(map_values(attributes)) AS value FROM spans)
GROUP BY key
ORDER BY different DESC`,
  },
  {
    name: "A gauge over time",
    sql: `SELECT time_bucket('1 minute', time) AS minute, service_name, avg(value) AS mean
FROM gauges
WHERE metric_name = 'process.cpu.utilization'
GROUP BY minute, service_name
ORDER BY minute`,
  },
  {
    name: "Snapshots of the lake",
    sql: `SELECT table_name, snapshot_id, committed_at, operation, added_rows, total_rows
FROM snapshots
ORDER BY committed_at DESC`,
  },
];
