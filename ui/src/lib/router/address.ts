/**
 * An address of the page: a screen, an optional id, and the query that the screen's codec reads.
 */

export const SCREENS = [
  "start",
  "logs",
  "traces",
  "trace",
  "services",
  "explore",
  "dashboards",
  "dashboard",
  "alerts",
  "topics",
  "topic",
  "group",
  "tables",
  "table",
  "sql",
  "pipeline",
  "lake",
  "load",
  "volume",
  "view",
] as const;

export type ScreenName = (typeof SCREENS)[number];

/** Screens with an id in their path: `trace/<id>`. */
const ABOUT_ONE: ReadonlySet<ScreenName> = new Set([
  "trace",
  "dashboard",
  "topic",
  "table",
  "view",
]);

export interface Address {
  readonly screen: ScreenName;
  /** Id of the trace, dashboard, topic, table or saved view; empty for other screens. */
  readonly id: string;
  readonly query: URLSearchParams;
}

/** Parse a path below the root; null if there is no such screen. */
export function parseAddress(path: string, search: string): Address | null {
  const parts = path.split("/").filter((part) => part !== "");
  const query = new URLSearchParams(search);
  if (parts.length === 0) return { screen: "start", id: "", query };
  const screen = SCREENS.find((name) => name === parts[0]);
  if (!screen || parts.length !== (ABOUT_ONE.has(screen) ? 2 : 1)) return null;
  return { screen, id: decoded(parts[1] ?? ""), query };
}

/** Format an address as a path below the root with a query. */
export function formatAddress(address: Address): string {
  const query = address.query.toString();
  const path =
    address.screen === "start"
      ? ""
      : ABOUT_ONE.has(address.screen)
        ? `${address.screen}/${encodeURIComponent(address.id)}`
        : address.screen;
  return query ? `${path}?${query}` : path;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // Not encoded by this page.
  }
}
