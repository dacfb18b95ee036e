/** Columns of the log list with names, as filters use them, and widths. */

import type { Field } from "../../../lib/router/codec";
import type { LogRecord } from "./records";

export interface Column {
  readonly name: string;
  readonly width: number;
}

export const WIDTH_MIN = 40;
export const WIDTH_MAX = 800;
export const WIDTH_NEW = 140;
export const WIDTH_STEP = 16;

/** The body comes last and takes the remaining width. */
export const COLUMNS: readonly Column[] = [
  { name: "time", width: 104 },
  { name: "severity", width: 58 },
  { name: "service_name", width: 116 },
];

/** As `120:http.route`, without duplicates. */
export const columnsField: Field<readonly Column[]> = {
  empty: COLUMNS,
  read(texts) {
    if (!texts.length) return COLUMNS;
    const found = new Map<string, Column>();
    for (const text of texts) {
      const match = /^(\d{1,4}):([^]+)$/.exec(text);
      if (match) found.set(match[2]!, { name: match[2]!, width: bounded(Number(match[1])) });
    }
    return [...found.values()];
  },
  write: (columns) => columns.map(({ name, width }) => `${bounded(width)}:${name}`),
};

export function bounded(width: number): number {
  return Math.round(Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, width)));
}

/** Add or remove a column. */
export function toggleColumn(columns: readonly Column[], name: string): readonly Column[] {
  const others = columns.filter((column) => column.name !== name);
  return others.length < columns.length ? others : [...columns, { name, width: WIDTH_NEW }];
}

export function resizeColumn(columns: readonly Column[], name: string, width: number) {
  return columns.map((each) => (each.name === name ? { name, width: bounded(width) } : each));
}

/** Move a column left or right. */
export function moveColumn(
  columns: readonly Column[],
  name: string,
  by: -1 | 1,
): readonly Column[] {
  const from = columns.findIndex((column) => column.name === name);
  const other = columns[from + by];
  if (from < 0 || !other) return columns;
  return columns.map((column, i) =>
    i === from ? other : i === from + by ? columns[from]! : column,
  );
}

const DAY_WIDTH = 26;
const CLOCK_WIDTH = 92;

/** CSS grid template: columns shrink before the body has no space. Dates need more width. */
export function templateOf(columns: readonly Column[], hasDay = false): string {
  const tracks = columns.map(({ name, width }) => {
    const most = name === "time" && hasDay ? width + DAY_WIDTH : width;
    const least = name === "time" ? Math.min(width, CLOCK_WIDTH) : WIDTH_MIN;
    return `minmax(${least}px, ${most}px)`;
  });
  return [...tracks, "minmax(40%, 1fr)"].join(" ");
}

/** Table columns that are resource attributes. */
const OF_RESOURCE: Readonly<Record<string, readonly string[]>> = {
  service_namespace: ["service.namespace"],
  service_instance_id: ["service.instance.id"],
  deployment_environment: ["deployment.environment.name", "deployment.environment"],
  host_name: ["host.name"],
  k8s_namespace_name: ["k8s.namespace.name"],
  k8s_pod_name: ["k8s.pod.name"],
  k8s_container_name: ["k8s.container.name"],
};

const OF_RECORD = [
  "time",
  "time_unix_nano",
  "observed_time_unix_nano",
  "service_name",
  "severity",
  "severity_number",
  "severity_text",
  "event_name",
  "body",
  "body_type",
  "trace_id",
  "span_id",
  "flags",
  "scope_name",
  "scope_version",
] as const satisfies readonly (keyof LogRecord)[];

/** Value of a field; null if it is missing. */
export function valueOf(row: LogRecord, name: string): string | null {
  const own = OF_RECORD.find((each) => each === name);
  if (own) return row[own] === null ? null : String(row[own]);
  const promoted = Object.hasOwn(OF_RESOURCE, name) ? OF_RESOURCE[name] : undefined;
  if (promoted) {
    const key = promoted.find((each) => Object.hasOwn(row.resource_attributes, each));
    return key === undefined ? null : row.resource_attributes[key]!;
  }
  for (const [prefix, attributes] of [
    ["resource.", row.resource_attributes],
    ["scope.", row.scope_attributes],
    ["attribute.", row.attributes],
  ] as const) {
    if (name.startsWith(prefix)) return attributeOf(attributes, name.slice(prefix.length));
  }
  return attributeOf(row.attributes, name);
}

function attributeOf(attributes: Record<string, string>, key: string): string | null {
  return Object.hasOwn(attributes, key) ? attributes[key]! : null;
}

/** Filter name of an attribute. */
export function attributeName(key: string): string {
  // Columns have no dots, so a key with a dot can only be mistaken for a prefix.
  const isPlain = key.includes(".") && !/^(?:resource|scope|attribute)\./.test(key);
  return isPlain ? key : `attribute.${key}`;
}
