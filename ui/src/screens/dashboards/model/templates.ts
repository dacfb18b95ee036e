/** Dashboard templates. */

import {
  type DashboardModel,
  type PanelModel,
  type VariableModel,
  EMPTY,
  newPanel,
  newVariable,
} from "./dashboard";

export interface Template {
  readonly title: string;
  readonly about: string;
  readonly dash: DashboardModel;
}

type Metric = NonNullable<PanelModel["metric"]>;

const metric = (
  name: string,
  aggregates: readonly string[],
  more: Partial<Metric> = {},
): Metric => ({
  name,
  type: "",
  aggregates,
  by: [],
  filter: [],
  exclude: [],
  step: "",
  ...more,
});

const panel = (
  kind: PanelModel["kind"],
  id: string,
  title: string,
  [x, y, w, h]: readonly [number, number, number, number],
  more: Partial<PanelModel>,
): PanelModel => ({ ...newPanel(kind, id), title, x, y, w, h, ...more });

/** Requests of the selected services in the time range. */
const REQUESTS = `FROM entry_spans
WHERE service_name IN ($service) AND time >= $from AND time < $to`;
const STEP = "time_bucket('$step seconds', time) AS at";
const ERRORS = "count(*) FILTER (WHERE status_code = 'ERROR')";

const SERVICES: VariableModel = {
  ...newVariable("service"),
  label: "Service",
  kind: "sql",
  of: "",
  sql: "SELECT DISTINCT service_name FROM spans WHERE time >= $from AND time < $to",
};

const RED: DashboardModel = {
  title: "Services",
  description: "Request rate, error rate and latency of services.",
  variables: [SERVICES],
  panels: [
    panel("series", "rate", "Requests per second", [0, 0, 4, 8], {
      sql: `SELECT ${STEP}, service_name, count(*) / $step.0 AS rate\n${REQUESTS}\nGROUP BY 1, 2 ORDER BY 1`,
      unit: "1/s",
    }),
    panel("series", "errors", "Error rate", [4, 0, 4, 8], {
      sql: `SELECT ${STEP}, service_name, 100.0 * ${ERRORS} / count(*) AS error_rate\n${REQUESTS}\nGROUP BY 1, 2 ORDER BY 1`,
      unit: "%",
    }),
    panel("series", "time", "p95 latency", [8, 0, 4, 8], {
      sql: `SELECT ${STEP}, service_name, percentile(duration_nano, 0.95) AS p95\n${REQUESTS}\nGROUP BY 1, 2 ORDER BY 1`,
      unit: "ns",
    }),
    panel("table", "all", "Operations", [0, 8, 8, 9], {
      sql: `SELECT service_name, name, count(*) AS requests, ${ERRORS} AS errors,
       round(percentile(duration_nano, 0.5) / 1e6, 1) AS p50_ms,
       round(percentile(duration_nano, 0.95) / 1e6, 1) AS p95_ms
${REQUESTS}
GROUP BY 1, 2 ORDER BY requests DESC LIMIT 100`,
    }),
    panel("top", "slow", "Slowest operations by p95 latency", [8, 8, 4, 9], {
      sql: `SELECT service_name, name, percentile(duration_nano, 0.95) AS p95\n${REQUESTS}\nGROUP BY 1, 2 ORDER BY 3 DESC LIMIT 20`,
      unit: "ns",
    }),
    panel("logs", "logs", "Error logs", [0, 17, 12, 8], {
      logs: { search: "", severity: "ERROR", filter: ["service_name=$service"], exclude: [] },
    }),
  ],
};

const SHOP: DashboardModel = {
  title: "Shop",
  description: "The sample shop of `frazil demo`: orders, requests, latency.",
  variables: [
    {
      ...newVariable("service"),
      label: "Service",
      metric: "http.server.request.duration",
    },
  ],
  panels: [
    panel("stat", "orders", "Orders", [0, 0, 3, 4], {
      metric: metric("shop.orders", ["increase"]),
      reduce: "sum",
    }),
    panel("stat", "revenue", "Revenue", [3, 0, 3, 4], {
      metric: metric("shop.revenue", ["increase"]),
      reduce: "sum",
    }),
    panel("stat", "carts", "Open carts", [6, 0, 3, 4], {
      metric: metric("shop.carts.open", ["sum"]),
    }),
    panel("stat", "mails", "Emails queued", [9, 0, 3, 4], {
      metric: metric("shop.mail.queue.length", ["sum"]),
    }),
    panel("series", "requests", "Requests", [0, 4, 6, 9], {
      metric: metric("http.server.request.duration", ["rate"], {
        by: ["service_name"],
        filter: ["service_name=$service"],
      }),
      look: "stacked",
    }),
    panel("series", "duration", "Request duration", [6, 4, 6, 9], {
      metric: metric("http.server.request.duration", ["p50", "p90", "p99"], {
        filter: ["service_name=$service"],
      }),
    }),
    panel("top", "routes", "Slowest routes, p99", [0, 13, 4, 8], {
      metric: metric("http.server.request.duration", ["p99"], {
        by: ["service_name", "http.route"],
        filter: ["service_name=$service"],
      }),
      reduce: "max",
    }),
    panel("series", "memory", "Memory", [4, 13, 4, 8], {
      metric: metric("process.memory.usage", ["max"], { by: ["service_name"] }),
    }),
    panel("series", "payments", "Payment provider", [8, 13, 4, 8], {
      metric: metric("payment_provider_latency_seconds", ["p50", "p90", "p99"]),
    }),
    panel("logs", "trouble", "Warnings and errors", [0, 21, 12, 8], {
      logs: { search: "", severity: "WARN", filter: ["service_name=$service"], exclude: [] },
    }),
  ],
};

export const TEMPLATES: readonly Template[] = [
  { title: "Empty", about: "No panels.", dash: EMPTY },
  { title: "Services", about: "Request rate, error rate and latency, from spans.", dash: RED },
  { title: "Shop", about: "The sample shop of `frazil demo`.", dash: SHOP },
];
