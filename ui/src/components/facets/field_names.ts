/** Field names as displayed, and as filters use them. */

/** Drop the prefix that the API needs to tell attributes apart. */
export function shortName(name: string): string {
  return name.replace(/^(?:resource|attribute)\./, "");
}

/** Aliases of the search box; filters know only the column. */
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
