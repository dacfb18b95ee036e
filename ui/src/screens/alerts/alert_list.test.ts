import { expect, test } from "vitest";

import type { AlertReport, RuleReport, RulesReport } from "../../lib/api/types.gen";
import { alertsOf, countsOf, labelText, matches } from "./alert_list";

function alert(state: AlertReport["state"], atMs: number): AlertReport {
  return {
    labels: { alertname: "Slow", b: "2", a: "1" },
    annotations: {},
    state,
    value: "1",
    active_at_ms: atMs,
    fired_at_ms: state === "pending" ? null : atMs,
    resolved_at_ms: state === "resolved" ? atMs : null,
    keep_firing_since_ms: null,
  };
}

function report(alerts: AlertReport[], health: RuleReport["health"] = "ok"): RulesReport {
  const rule: RuleReport = {
    name: "Slow",
    kind: "alerting",
    language: "sql",
    query: "SELECT 1 AS value",
    labels: {},
    annotations: {},
    for_ms: 0,
    keep_firing_for_ms: 0,
    state: "inactive",
    health,
    last_error: null,
    evaluated_at_ms: null,
    evaluation_ms: 0,
    alerts,
  };
  const group = {
    name: "g",
    file: "f.yml",
    interval_ms: 60_000,
    query_offset_ms: 0,
    limit: 0,
    evaluated_at_ms: null,
    evaluation_ms: 0,
    missed_count: 0,
    rules: [rule],
  };
  return { groups: [group], file_error: null, notifiers: [], changes: [] };
}

test("the most urgent alerts come first, then the newest", () => {
  const found = alertsOf(
    report([alert("resolved", 9), alert("pending", 3), alert("firing", 1), alert("firing", 2)]),
  );
  expect(found.map((each) => [each.alert.state, each.alert.active_at_ms])).toEqual([
    ["firing", 2],
    ["firing", 1],
    ["pending", 3],
    ["resolved", 9],
  ]);
});

test("alerts and rules in error are counted", () => {
  expect(countsOf(report([alert("pending", 3), alert("firing", 1)], "err"))).toEqual({
    firing: 1,
    pending: 1,
    resolved: 0,
    errors: 1,
  });
});

test("labels are sorted, without the name of the alert", () => {
  expect(labelText(alert("firing", 1).labels)).toBe("a=1, b=2");
  expect(matches(" SL", "Slow")).toBe(true);
  expect(matches("fast", "Slow", "a=1")).toBe(false);
});
