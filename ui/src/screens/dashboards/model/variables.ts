/** Variables: what is chosen of them, and what panels ask with it in place of `$name`. */

import type { MetricAsked } from "../../../lib/metrics/metric";
import type { Stretch } from "../../../lib/time/range";
import type { DashPanel, DashVariable, LogsAsked } from "./dashboard";

/** What is chosen, by name. No value is all of them. */
export type Chosen = Readonly<Record<string, readonly string[]>>;

/** What an address says: `name=value`. A variable that it does not name is as the file has it. */
export function chosenOf(variables: readonly DashVariable[], pairs: readonly string[]): Chosen {
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

function replaced(text: string, value: (name: string) => string | undefined): string {
  return text.replace(NAMED, (whole, braced?: string, bare?: string) => {
    return value(braced ?? bare ?? "") ?? whole;
  });
}

/** In a title: as people read it. */
export function inWords(text: string, chosen: Chosen): string {
  return replaced(text, (name) => {
    const values = own(chosen, name);
    return values && (values.length ? values.join(", ") : "all");
  });
}

/**
 * In SQL: `$service` is a list of quoted texts, for `IN ($service)`; `$from`, `$to` are the time that
 * is looked at, `$step` the seconds of a step. All is each value that is known.
 */
export function inSql(
  sql: string,
  chosen: Chosen,
  known: Chosen,
  stretch: Stretch,
  stepS: number,
): string {
  return replaced(sql, (name) => {
    if (name === "from") return quoted(new Date(stretch.sinceMs).toISOString());
    if (name === "to") return quoted(new Date(stretch.untilMs).toISOString());
    if (name === "step") return String(stepS);
    const values = own(chosen, name);
    if (!values) return undefined;
    const all = values.length ? values : (own(known, name) ?? []);
    return all.length ? all.map(quoted).join(", ") : "NULL";
  });
}

/** In filters: one for each value; where all are chosen there is none. */
export function inPairs(pairs: readonly string[], chosen: Chosen): string[] {
  return pairs.flatMap((pair) => {
    const whole = /=\$\{?([a-z][a-z0-9_]*)\}?$/.exec(pair);
    const values = whole && own(chosen, whole[1] ?? "");
    if (!values) return [inWords(pair, chosen)];
    return values.map((value) => `${pair.slice(0, pair.indexOf("=") + 1)}${value}`);
  });
}

export function inMetric(asked: MetricAsked, chosen: Chosen): MetricAsked {
  return {
    ...asked,
    name: inWords(asked.name, chosen),
    filter: inPairs(asked.filter, chosen),
    exclude: inPairs(asked.exclude, chosen),
  };
}

export function inLogs(asked: LogsAsked, chosen: Chosen): LogsAsked {
  return {
    ...asked,
    search: inWords(asked.search, chosen),
    filter: inPairs(asked.filter, chosen),
    exclude: inPairs(asked.exclude, chosen),
  };
}

/** Does a panel ask with a variable? */
export function isUsed(panel: DashPanel, name: string): boolean {
  return (
    JSON.stringify(panel).includes(`$${name}`) || JSON.stringify(panel).includes(`\${${name}}`)
  );
}

function own(chosen: Chosen, name: string): readonly string[] | undefined {
  return Object.hasOwn(chosen, name) ? chosen[name] : undefined;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
