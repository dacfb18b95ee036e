/** Selected variable values, and their substitution for `$name` in panel queries. */

import type { MetricQuery } from "../../../lib/metrics/metric";
import type { TimeRange } from "../../../lib/time/range";
import type { PanelModel, VariableModel, LogsQuery } from "./dashboard";

/** Selected values by variable. An empty list means all. */
export type VariableValues = Readonly<Record<string, readonly string[]>>;

/** Read the selection from `name=value` pairs. Other variables have the file's default. */
export function selectedValues(
  variables: readonly VariableModel[],
  pairs: readonly string[],
): VariableValues {
  return Object.fromEntries(
    variables.map(({ name, many, chosen }) => {
      const given = pairs.filter((pair) => pair.startsWith(`${name}=`));
      if (!given.length) return [name, chosen];
      const values = given.map((pair) => pair.slice(name.length + 1)).filter(Boolean);
      return [name, many ? values : values.slice(0, 1)];
    }),
  );
}

/** The pairs after one variable has changed. */
export function pairsWith(
  pairs: readonly string[],
  name: string,
  values: readonly string[],
): string[] {
  const others = pairs.filter((pair) => !pair.startsWith(`${name}=`));
  return [...others, ...(values.length ? values.map((value) => `${name}=${value}`) : [`${name}=`])];
}

const NAMED = /\$(?:\{([a-z][a-z0-9_]*)\}|([a-z][a-z0-9_]*))/g;

function substitute(text: string, value: (name: string) => string | undefined): string {
  return text.replace(NAMED, (whole, braced?: string, bare?: string) => {
    return value(braced ?? bare ?? "") ?? whole;
  });
}

/** Substitute in titles. */
export function substituteText(text: string, chosen: VariableValues): string {
  return substitute(text, (name) => {
    const values = own(chosen, name);
    return values && (values.length ? values.join(", ") : "all");
  });
}

/**
 * Substitute in SQL: `$service` becomes a list of quoted texts, for `IN ($service)`; `$from` and
 * `$to` are the time range, `$step` the step in seconds. All means every known value.
 */
export function substituteSql(
  sql: string,
  chosen: VariableValues,
  known: VariableValues,
  range: TimeRange,
  stepS: number,
): string {
  return substitute(sql, (name) => {
    if (name === "from") return quoted(new Date(range.sinceMs).toISOString());
    if (name === "to") return quoted(new Date(range.untilMs).toISOString());
    if (name === "step") return String(stepS);
    const values = own(chosen, name);
    if (!values) return undefined;
    const all = values.length ? values : (own(known, name) ?? []);
    return all.length ? all.map(quoted).join(", ") : "NULL";
  });
}

/** Substitute in filters: one per selected value, none for all. */
export function substitutePairs(pairs: readonly string[], chosen: VariableValues): string[] {
  return pairs.flatMap((pair) => {
    const whole = /=\$\{?([a-z][a-z0-9_]*)\}?$/.exec(pair);
    const values = whole && own(chosen, whole[1] ?? "");
    if (!values) return [substituteText(pair, chosen)];
    return values.map((value) => `${pair.slice(0, pair.indexOf("=") + 1)}${value}`);
  });
}

export function substituteMetric(query: MetricQuery, chosen: VariableValues): MetricQuery {
  return {
    ...query,
    name: substituteText(query.name, chosen),
    filter: substitutePairs(query.filter, chosen),
    exclude: substitutePairs(query.exclude, chosen),
  };
}

export function substituteLogs(query: LogsQuery, chosen: VariableValues): LogsQuery {
  return {
    ...query,
    search: substituteText(query.search, chosen),
    filter: substitutePairs(query.filter, chosen),
    exclude: substitutePairs(query.exclude, chosen),
  };
}

/** Whether a panel uses a variable. */
export function isUsed(panel: PanelModel, name: string): boolean {
  return (
    JSON.stringify(panel).includes(`$${name}`) || JSON.stringify(panel).includes(`\${${name}}`)
  );
}

function own(chosen: VariableValues, name: string): readonly string[] | undefined {
  return Object.hasOwn(chosen, name) ? chosen[name] : undefined;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
