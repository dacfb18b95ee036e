/** Alerts and rules as lists. */

import type { AlertReport, RuleReport, RulesReport } from "../../lib/api/types.gen";

export interface ListedRule {
  readonly group: string;
  readonly file: string;
  readonly intervalMs: number;
  readonly missed: number;
  readonly rule: RuleReport;
}

export interface ListedAlert {
  readonly group: string;
  readonly rule: RuleReport;
  readonly alert: AlertReport;
}

const URGENCY = { firing: 0, pending: 1, resolved: 2 } as const;

export function rulesOf(report: RulesReport): ListedRule[] {
  return report.groups.flatMap((group) =>
    group.rules.map((rule) => ({
      group: group.name,
      file: group.file,
      intervalMs: group.interval_ms,
      missed: group.missed_count,
      rule,
    })),
  );
}

/** Alerts, the most urgent first, then the newest. */
export function alertsOf(report: RulesReport): ListedAlert[] {
  return report.groups
    .flatMap((group) =>
      group.rules.flatMap((rule) =>
        rule.alerts.map((alert) => ({ group: group.name, rule, alert })),
      ),
    )
    .sort(
      (one, other) =>
        URGENCY[one.alert.state] - URGENCY[other.alert.state] ||
        sinceMs(other.alert) - sinceMs(one.alert),
    );
}

/** When an alert got its state. */
export function sinceMs(alert: AlertReport): number {
  if (alert.state === "resolved") return alert.resolved_at_ms ?? alert.active_at_ms;
  if (alert.state === "firing") return alert.fired_at_ms ?? alert.active_at_ms;
  return alert.active_at_ms;
}

export interface Counts {
  readonly firing: number;
  readonly pending: number;
  readonly resolved: number;
  readonly errors: number;
}

export function countsOf(report: RulesReport): Counts {
  const alerts = alertsOf(report);
  const count = (state: AlertReport["state"]): number =>
    alerts.filter(({ alert }) => alert.state === state).length;
  return {
    firing: count("firing"),
    pending: count("pending"),
    resolved: count("resolved"),
    errors: rulesOf(report).filter(({ rule }) => rule.health === "err").length,
  };
}

/** Labels without the name of the alert, sorted. */
export function labelsOf(labels: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(labels)
    .filter(([name]) => name !== "alertname" && name !== "__name__")
    .sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Whether a search is in any of the texts. */
export function matches(search: string, ...texts: readonly string[]): boolean {
  const wanted = search.trim().toLowerCase();
  return wanted === "" || texts.some((text) => text.toLowerCase().includes(wanted));
}

export function labelText(labels: Readonly<Record<string, string>>): string {
  return labelsOf(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}
