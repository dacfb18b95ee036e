/** A dashboard: as the page has it, with all its fields, and as a file has it. */

import type {
  Dashboard,
  Panel,
  PanelLogs,
  PanelMetric,
  Variable,
} from "../../../lib/api/types.gen";
import type { MetricAsked } from "../../../lib/metrics/metric";
import { COLUMNS } from "./grid";

export const KINDS = ["series", "stat", "table", "logs", "top"] as const;
export const LOOKS = ["lines", "stacked", "bars"] as const;
export const REDUCES = ["last", "avg", "min", "max", "sum"] as const;
export const SOURCES = ["label", "sql", "list"] as const;
export const KIND_NAMES: Readonly<Record<DashPanel["kind"], string>> = {
  series: "Lines over time",
  stat: "One number",
  table: "Table",
  logs: "Log records",
  top: "Top list",
};

export type LogsAsked = Required<PanelLogs>;

export interface DashPanel extends Readonly<Required<Omit<Panel, "metric" | "logs">>> {
  readonly metric: MetricAsked | null;
  readonly logs: LogsAsked | null;
}

export type DashVariable = Required<Variable>;

export interface Dash {
  readonly title: string;
  readonly description: string;
  readonly variables: readonly DashVariable[];
  readonly panels: readonly DashPanel[];
}

export const EMPTY: Dash = { title: "", description: "", variables: [], panels: [] };

/** A new panel of a kind, which asks nothing yet. */
export function panelOf(kind: DashPanel["kind"], id: string): DashPanel {
  const size = { series: [6, 8], stat: [3, 4], table: [6, 8], logs: [12, 8], top: [4, 8] }[kind];
  return {
    id,
    title: "",
    kind,
    x: 0,
    y: 0,
    w: size[0] ?? 6,
    h: size[1] ?? 8,
    metric: null,
    sql: "",
    logs: kind === "logs" ? { search: "", severity: "", filter: [], exclude: [] } : null,
    unit: "",
    look: "lines",
    reduce: "last",
    limit: kind === "logs" ? 50 : 10,
  };
}

export function variableOf(name: string): DashVariable {
  return {
    name,
    label: "",
    kind: "label",
    metric: "",
    of: "service_name",
    sql: "",
    values: [],
    many: true,
    chosen: [],
  };
}

/** An id that no panel has. */
export function freeId(panels: readonly { id: string }[]): string {
  for (let n = panels.length + 1; ; n++) {
    if (!panels.some((panel) => panel.id === `p${n}`)) return `p${n}`;
  }
}

/** What a file has. Throws what is wrong with it, in a sentence. */
export function dashOf(given: unknown): Dash {
  const file = record(given, "A dashboard");
  if (file["format"] !== 1) {
    throw new Error(`Its format is ${JSON.stringify(file["format"])}; only 1 is known here.`);
  }
  known(file, ["format", "title", "description", "variables", "panels"], "A dashboard");
  const dash = {
    title: words(file["title"], "title"),
    description: words(file["description"] ?? "", "description"),
    variables: list(file["variables"] ?? [], "variables").map(variableIn),
    panels: list(file["panels"] ?? [], "panels").map(panelIn),
  };
  alone(dash.panels.map((panel) => panel.id));
  alone(dash.variables.map((variable) => variable.name));
  return dash;
}

/** As a file has it: without what goes without saying. */
export function fileOf(dash: Dash): Dashboard {
  return {
    format: 1,
    title: dash.title,
    ...(dash.description && { description: dash.description }),
    ...(dash.variables.length && { variables: dash.variables.map(variableFile) }),
    ...(dash.panels.length && { panels: dash.panels.map(panelFile) }),
  };
}

/** The text of that file, the same that the node writes. */
export function textOf(dash: Dash): string {
  return `${JSON.stringify(sorted(fileOf(dash)), null, 2)}\n`;
}

function panelFile(panel: DashPanel): Panel {
  const { id, kind, x, y, w, h, metric, logs } = panel;
  return {
    ...{ id, kind, x, y, w, h },
    ...(panel.title && { title: panel.title }),
    ...(metric && { metric: metricFile(metric) }),
    ...(panel.sql && { sql: panel.sql }),
    ...(logs && { logs: said(logs) }),
    ...(panel.unit && { unit: panel.unit }),
    ...(panel.look !== "lines" && { look: panel.look }),
    ...(panel.reduce !== "last" && { reduce: panel.reduce }),
    ...(panel.limit !== 10 && { limit: panel.limit }),
  };
}

function metricFile({ name, aggregates, ...rest }: MetricAsked): PanelMetric {
  const { by, filter, exclude, ...texts } = rest;
  const lists = { by: [...by], filter: [...filter], exclude: [...exclude] };
  return { name, aggregates: [...aggregates], ...said({ ...texts, ...lists }) };
}

function variableFile({ name, kind, ...rest }: DashVariable): Variable {
  return { name, kind, ...said(rest) };
}

/** Without empty texts and lists, and without what is not so. */
function said<T extends object>(all: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(all).filter(([, value]) =>
      Array.isArray(value) ? value.length > 0 : value !== "" && value !== false,
    ),
  ) as Partial<T>;
}

function panelIn(given: unknown): DashPanel {
  const file = record(given, "A panel");
  const id = words(file["id"], "the id of a panel");
  const what = `The panel ${id}`;
  if (!/^[a-z0-9]{1,16}$/.test(id)) throw new Error(`${what}: an id is letters and digits.`);
  known(file, Object.keys(panelOf("series", "a")), what);
  const w = whole(file["w"], 1, COLUMNS, `${what}: w`);
  return {
    id,
    title: words(file["title"] ?? "", `${what}: title`),
    kind: one(file["kind"], KINDS, `${what}: kind`),
    x: whole(file["x"], 0, COLUMNS - w, `${what}: x`),
    y: whole(file["y"], 0, 10_000, `${what}: y`),
    w,
    h: whole(file["h"], 1, 60, `${what}: h`),
    metric: file["metric"] ? metricIn(file["metric"], what) : null,
    sql: words(file["sql"] ?? "", `${what}: sql`),
    logs: file["logs"] ? logsIn(file["logs"], what) : null,
    unit: words(file["unit"] ?? "", `${what}: unit`),
    look: one(file["look"] ?? "lines", LOOKS, `${what}: look`),
    reduce: one(file["reduce"] ?? "last", REDUCES, `${what}: reduce`),
    limit: whole(file["limit"] ?? 10, 1, 1000, `${what}: limit`),
  };
}

function metricIn(given: unknown, what: string): MetricAsked {
  const file = record(given, `${what}: metric`);
  known(file, ["name", "type", "aggregates", "by", "filter", "exclude", "step"], what);
  const aggregates = texts(file["aggregates"], `${what}: aggregates`);
  if (!aggregates.length) throw new Error(`${what}: aggregates is empty; say one, as avg.`);
  return {
    name: words(file["name"], `${what}: the metric's name`),
    type: words(file["type"] ?? "", `${what}: type`),
    aggregates,
    by: texts(file["by"] ?? [], `${what}: by`),
    filter: texts(file["filter"] ?? [], `${what}: filter`),
    exclude: texts(file["exclude"] ?? [], `${what}: exclude`),
    step: words(file["step"] ?? "", `${what}: step`),
  };
}

function logsIn(given: unknown, what: string): LogsAsked {
  const file = record(given, `${what}: logs`);
  known(file, ["search", "severity", "filter", "exclude"], what);
  return {
    search: words(file["search"] ?? "", `${what}: search`),
    severity: words(file["severity"] ?? "", `${what}: severity`),
    filter: texts(file["filter"] ?? [], `${what}: filter`),
    exclude: texts(file["exclude"] ?? [], `${what}: exclude`),
  };
}

function variableIn(given: unknown): DashVariable {
  const file = record(given, "A variable");
  const name = words(file["name"], "the name of a variable");
  const what = `The variable ${name}`;
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(name)) {
    throw new Error(`${what}: a name is lower-case letters, digits and _.`);
  }
  known(file, Object.keys(variableOf("a")), what);
  return {
    name,
    label: words(file["label"] ?? "", `${what}: label`),
    kind: one(file["kind"], SOURCES, `${what}: kind`),
    metric: words(file["metric"] ?? "", `${what}: metric`),
    of: words(file["of"] ?? "", `${what}: of`),
    sql: words(file["sql"] ?? "", `${what}: sql`),
    values: texts(file["values"] ?? [], `${what}: values`),
    many: file["many"] === true,
    chosen: texts(file["chosen"] ?? [], `${what}: chosen`),
  };
}

function record(given: unknown, what: string): Record<string, unknown> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new Error(`${what} is an object in braces.`);
  }
  return given as Record<string, unknown>;
}

function known(file: Record<string, unknown>, names: readonly string[], what: string): void {
  const odd = Object.keys(file).find((name) => !names.includes(name));
  if (odd !== undefined) throw new Error(`${what} has no field ${odd}.`);
}

function words(given: unknown, what: string): string {
  if (typeof given !== "string") throw new Error(`${what} must be a text.`);
  return given;
}

function list(given: unknown, what: string): unknown[] {
  if (!Array.isArray(given)) throw new Error(`${what} must be a list.`);
  return given as unknown[];
}

function texts(given: unknown, what: string): string[] {
  return list(given, what).map((each) => words(each, `each of ${what}`));
}

function one<T extends string>(given: unknown, choices: readonly T[], what: string): T {
  const found = choices.find((each) => each === given);
  if (found === undefined) throw new Error(`${what} must be one of ${choices.join(", ")}.`);
  return found;
}

function whole(given: unknown, min: number, max: number, what: string): number {
  if (typeof given !== "number" || !Number.isInteger(given) || given < min || given > max) {
    throw new Error(`${what} must be a whole number from ${min} to ${max}.`);
  }
  return given;
}

function alone(names: readonly string[]): void {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new Error(`Two things are called ${twice}; give each its name.`);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  );
}

/** A name for the file of a dashboard, unlike those that are taken. */
export function freeName(title: string, taken: readonly string[]): string {
  const plain = title
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 56)
    .replace(/-+$/, "");
  const base = plain || "dashboard";
  for (let n = 1; ; n++) {
    const name = n === 1 ? base : `${base}-${n}`;
    if (!taken.includes(name)) return name;
  }
}
