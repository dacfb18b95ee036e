/** A dashboard in memory, with all fields, and its JSON file. */

import type {
  Dashboard,
  Panel,
  PanelLogs,
  PanelMetric,
  Variable,
} from "../../../lib/api/types.gen";
import type { MetricQuery } from "../../../lib/metrics/metric";
import { COLUMNS } from "./grid";

export const KINDS = ["series", "stat", "table", "logs", "top"] as const;
export const LOOKS = ["lines", "stacked", "bars"] as const;
export const REDUCES = ["last", "avg", "min", "max", "sum"] as const;
export const SOURCES = ["label", "sql", "list"] as const;
export const KIND_NAMES: Readonly<Record<PanelModel["kind"], string>> = {
  series: "Time series",
  stat: "Stat",
  table: "Table",
  logs: "Logs",
  top: "Top list",
};

export type LogsQuery = Required<PanelLogs>;

export interface PanelModel extends Readonly<Required<Omit<Panel, "metric" | "logs">>> {
  readonly metric: MetricQuery | null;
  readonly logs: LogsQuery | null;
}

export type VariableModel = Required<Variable>;

export interface DashboardModel {
  readonly title: string;
  readonly description: string;
  readonly variables: readonly VariableModel[];
  readonly panels: readonly PanelModel[];
}

export const EMPTY: DashboardModel = { title: "", description: "", variables: [], panels: [] };

/** A new panel without a query. */
export function newPanel(kind: PanelModel["kind"], id: string): PanelModel {
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

export function newVariable(name: string): VariableModel {
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

/** An id that no panel uses. */
export function unusedId(panels: readonly { id: string }[]): string {
  for (let n = panels.length + 1; ; n++) {
    if (!panels.some((panel) => panel.id === `p${n}`)) return `p${n}`;
  }
}

/** Parse a file. Throws an error that says what is wrong. */
export function parseDashboard(value: unknown): DashboardModel {
  const file = requireObject(value, "A dashboard");
  if (file["format"] !== 1) {
    throw new Error(`Its format is ${JSON.stringify(file["format"])}; only 1 is supported.`);
  }
  rejectUnknown(file, ["format", "title", "description", "variables", "panels"], "A dashboard");
  const dash = {
    title: requireText(file["title"], "title"),
    description: requireText(file["description"] ?? "", "description"),
    variables: requireList(file["variables"] ?? [], "variables").map(parseVariable),
    panels: requireList(file["panels"] ?? [], "panels").map(parsePanel),
  };
  requireUnique(dash.panels.map((panel) => panel.id));
  requireUnique(dash.variables.map((variable) => variable.name));
  return dash;
}

/** The file's content, without default values. */
export function toFile(dash: DashboardModel): Dashboard {
  return {
    format: 1,
    title: dash.title,
    ...(dash.description && { description: dash.description }),
    ...(dash.variables.length && { variables: dash.variables.map(variableFile) }),
    ...(dash.panels.length && { panels: dash.panels.map(panelFile) }),
  };
}

/** The file's text, identical to what the node writes. */
export function toFileText(dash: DashboardModel): string {
  return `${JSON.stringify(sorted(toFile(dash)), null, 2)}\n`;
}

function panelFile(panel: PanelModel): Panel {
  const { id, kind, x, y, w, h, metric, logs } = panel;
  return {
    ...{ id, kind, x, y, w, h },
    ...(panel.title && { title: panel.title }),
    ...(metric && { metric: metricFile(metric) }),
    ...(panel.sql && { sql: panel.sql }),
    ...(logs && { logs: withoutEmpty(logs) }),
    ...(panel.unit && { unit: panel.unit }),
    ...(panel.look !== "lines" && { look: panel.look }),
    ...(panel.reduce !== "last" && { reduce: panel.reduce }),
    ...(panel.limit !== 10 && { limit: panel.limit }),
  };
}

function metricFile({ name, aggregates, ...rest }: MetricQuery): PanelMetric {
  const { by, filter, exclude, ...texts } = rest;
  const lists = { by: [...by], filter: [...filter], exclude: [...exclude] };
  return { name, aggregates: [...aggregates], ...withoutEmpty({ ...texts, ...lists }) };
}

function variableFile({ name, kind, ...rest }: VariableModel): Variable {
  return { name, kind, ...withoutEmpty(rest) };
}

/** Drop empty texts, empty lists and false. */
function withoutEmpty<T extends object>(all: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(all).filter(([, value]) =>
      Array.isArray(value) ? value.length > 0 : value !== "" && value !== false,
    ),
  ) as Partial<T>;
}

function parsePanel(value: unknown): PanelModel {
  const file = requireObject(value, "A panel");
  const id = requireText(file["id"], "the id of a panel");
  const what = `The panel ${id}`;
  if (!/^[a-z0-9]{1,16}$/.test(id)) throw new Error(`${what}: an id has only letters and digits.`);
  rejectUnknown(file, Object.keys(newPanel("series", "a")), what);
  const w = requireInteger(file["w"], 1, COLUMNS, `${what}: w`);
  return {
    id,
    title: requireText(file["title"] ?? "", `${what}: title`),
    kind: requireOneOf(file["kind"], KINDS, `${what}: kind`),
    x: requireInteger(file["x"], 0, COLUMNS - w, `${what}: x`),
    y: requireInteger(file["y"], 0, 10_000, `${what}: y`),
    w,
    h: requireInteger(file["h"], 1, 60, `${what}: h`),
    metric: file["metric"] ? parseMetric(file["metric"], what) : null,
    sql: requireText(file["sql"] ?? "", `${what}: sql`),
    logs: file["logs"] ? parseLogs(file["logs"], what) : null,
    unit: requireText(file["unit"] ?? "", `${what}: unit`),
    look: requireOneOf(file["look"] ?? "lines", LOOKS, `${what}: look`),
    reduce: requireOneOf(file["reduce"] ?? "last", REDUCES, `${what}: reduce`),
    limit: requireInteger(file["limit"] ?? 10, 1, 1000, `${what}: limit`),
  };
}

function parseMetric(value: unknown, what: string): MetricQuery {
  const file = requireObject(value, `${what}: metric`);
  rejectUnknown(file, ["name", "type", "aggregates", "by", "filter", "exclude", "step"], what);
  const aggregates = requireTexts(file["aggregates"], `${what}: aggregates`);
  if (!aggregates.length) throw new Error(`${what}: aggregates is empty; add one, such as avg.`);
  return {
    name: requireText(file["name"], `${what}: metric name`),
    type: requireText(file["type"] ?? "", `${what}: type`),
    aggregates,
    by: requireTexts(file["by"] ?? [], `${what}: by`),
    filter: requireTexts(file["filter"] ?? [], `${what}: filter`),
    exclude: requireTexts(file["exclude"] ?? [], `${what}: exclude`),
    step: requireText(file["step"] ?? "", `${what}: step`),
  };
}

function parseLogs(value: unknown, what: string): LogsQuery {
  const file = requireObject(value, `${what}: logs`);
  rejectUnknown(file, ["search", "severity", "filter", "exclude"], what);
  return {
    search: requireText(file["search"] ?? "", `${what}: search`),
    severity: requireText(file["severity"] ?? "", `${what}: severity`),
    filter: requireTexts(file["filter"] ?? [], `${what}: filter`),
    exclude: requireTexts(file["exclude"] ?? [], `${what}: exclude`),
  };
}

function parseVariable(value: unknown): VariableModel {
  const file = requireObject(value, "A variable");
  const name = requireText(file["name"], "the name of a variable");
  const what = `The variable ${name}`;
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(name)) {
    throw new Error(`${what}: a name has only lower-case letters, digits and _.`);
  }
  rejectUnknown(file, Object.keys(newVariable("a")), what);
  return {
    name,
    label: requireText(file["label"] ?? "", `${what}: label`),
    kind: requireOneOf(file["kind"], SOURCES, `${what}: kind`),
    metric: requireText(file["metric"] ?? "", `${what}: metric`),
    of: requireText(file["of"] ?? "", `${what}: of`),
    sql: requireText(file["sql"] ?? "", `${what}: sql`),
    values: requireTexts(file["values"] ?? [], `${what}: values`),
    many: file["many"] === true,
    chosen: requireTexts(file["chosen"] ?? [], `${what}: chosen`),
  };
}

function requireObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`${what} must be an object.`);
  }
  return value as Record<string, unknown>;
}

function rejectUnknown(
  file: Record<string, unknown>,
  names: readonly string[],
  what: string,
): void {
  const odd = Object.keys(file).find((name) => !names.includes(name));
  if (odd !== undefined) throw new Error(`${what} has no field ${odd}.`);
}

function requireText(value: unknown, what: string): string {
  if (typeof value !== "string") throw new Error(`${what} must be a string.`);
  return value;
}

function requireList(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw new Error(`${what} must be a list.`);
  return value as unknown[];
}

function requireTexts(value: unknown, what: string): string[] {
  return requireList(value, what).map((each) => requireText(each, `each of ${what}`));
}

function requireOneOf<T extends string>(value: unknown, choices: readonly T[], what: string): T {
  const found = choices.find((each) => each === value);
  if (found === undefined) throw new Error(`${what} must be one of ${choices.join(", ")}.`);
  return found;
}

function requireInteger(value: unknown, min: number, max: number, what: string): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
    throw new Error(`${what} must be an integer from ${min} to ${max}.`);
  }
  return value;
}

function requireUnique(names: readonly string[]): void {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new Error(`${twice} is used twice. Names must be unique.`);
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
