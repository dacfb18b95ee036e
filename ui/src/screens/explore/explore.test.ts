import { describe, expect, it, vi } from "vitest";

import type { Metric } from "../../lib/api/types.gen";
import type { MetricQuery } from "../../lib/metrics/metric";
import { metricSql } from "./metric_sql";
import { searchMetrics, groupByPrefix, kindName, prefixOf } from "./metric_list";

// There is no DOM here.
vi.mock("../../lib/router/router.svelte", () => ({ ROOT: new URL("http://node/") }));
vi.mock("../../lib/state/prefs.svelte", () => ({ prefs: { isUtc: true } }));
vi.mock("../../lib/api/token.svelte", () => ({ token: {} }));

const metric = (name: string, description = ""): Metric => ({
  name,
  type: "gauge",
  unit: null,
  description,
  temporality: null,
  is_monotonic: null,
  services: ["shop"],
  point_count: 1,
  newest: "2026-11-16T10:00:00Z",
});

describe("the list of metrics", () => {
  const all = [metric("http.a", "Requests"), metric("http.b"), metric("node_cpu")];

  it("finds metrics by all words of name and description", () => {
    expect(searchMetrics(all, "HTTP req").map((each) => each.name)).toEqual(["http.a"]);
    expect(searchMetrics(all, " ")).toHaveLength(3);
  });

  it("groups metrics under headings", () => {
    expect(
      groupByPrefix(all).map((each) => (each.kind === "group" ? each.name : each.metric.name)),
    ).toEqual(["http", "http.a", "http.b", "node", "node_cpu"]);
    expect(prefixOf("...")).toBe("...");
  });

  it("names metric kinds", () => {
    expect(kindName({ type: "sum", is_monotonic: true })).toBe("counter");
    expect(kindName({ type: "exponential_histogram", is_monotonic: null })).toBe("exp. histogram");
  });
});

describe("SQL", () => {
  it("quotes received text", () => {
    const asked: MetricQuery = {
      name: "it's",
      type: "gauge",
      aggregates: ["max"],
      by: ['a"b', "resource.host.name"],
      filter: ["http.route=' OR 1=1"],
      exclude: ["service_name=x=y"],
      step: "1m",
    };
    const sql = metricSql(asked, { type: "gauge" }, { sinceMs: 0, untilMs: 1000 });
    expect(sql).toContain("metric_name = 'it''s'");
    expect(sql).toContain(`attributes['a"b'] AS "a""b"`);
    expect(sql).toContain("resource_attributes['host.name']");
    expect(sql).toContain("attributes['http.route'] = ''' OR 1=1'");
    expect(sql).toContain("service_name IS DISTINCT FROM 'x=y'");
    expect(sql).toContain("max(value)");
  });
});
