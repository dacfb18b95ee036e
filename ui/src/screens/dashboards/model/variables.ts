/** Variables: what is chosen of them, and what panels ask with it in place of `$name`. */

import type { MetricQuery } from "../../../lib/metrics/metric";
import type { TimeRange } from "../../../lib/time/range";
import type { PanelModel, VariableModel, LogsQuery } from "./dashboard";

/** What is chosen, by name. No value is all of them. */
export type VariableValues = Readonly<Record<string, readonly string[]>>;

/** What an address says: `name=value`. A variable that it does not name is as the file has it. */
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

/** The same in an address, after one of them has changed. */
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

/** In a title: as people read it. */
export function substituteText(text: string, chosen: VariableValues): string {
  return substitute(text, (name) => {
    const values = own(chosen, name);
    return values && (values.length ? values.join(", ") : "all");
  });
}

/**
 * In SQL: `$service` is a list of quoted texts, for `IN ($service)`; `$from`, `$to` are the time that
 * is looked at, `$step` the seconds of a step. All is each value that is known.
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

/** In filters: one for each value; where all are chosen there is none. */
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

/** Does a panel ask with a variable? */
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
