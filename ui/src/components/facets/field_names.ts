/** Names of fields: as people read them, and as filters know them. */

/** Without what the API needs to tell it apart. */
export function shortName(name: string): string {
  return name.replace(/^(?:resource|attribute)\./, "");
}

/** What the search box knows by another name; filters know the column only. */
const COLUMNS = {
  logs: new Map([
    ["service", "service_name"],
    ["trace", "trace_id"],
    ["span", "span_id"],
    ["level", "severity"],
  ]),
  spans: new Map([
    ["service", "service_name"],
    ["trace", "trace_id"],
    ["span", "span_id"],
    ["status", "status_code"],
    ["duration_ms", "duration_nano"],
  ]),
};

export function columnOf(table: "logs" | "spans", name: string): string {
  return COLUMNS[table].get(name) ?? name;
}
