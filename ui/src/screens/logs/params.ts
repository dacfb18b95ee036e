/** What the logs screen shows, as its address has it. */

import { choice, codec, distinct, flag, type StateOf, text } from "../../lib/router/codec";
import { columnsField } from "./list/columns";

/** Which values are counted when nobody says, and how people call them. */
export const FACETS = new Map([
  ["service_name", "Service"],
  ["severity", "Severity"],
  ["host_name", "Host"],
  ["k8s_pod_name", "Pod"],
  ["scope_name", "Scope"],
  ["event_name", "Event"],
]);

export const params = codec({
  /** The search box. */
  q: text(),
  /** `name=value`: has one of the values of each name, and none of `not`. */
  is: distinct(),
  not: distinct(),
  order: choice(["newest", "oldest"], "newest"),
  columns: columnsField,
  wrap: flag(),
  /** What is there at all: the histogram, the facets, the query as SQL. */
  bars: flag(true),
  side: flag(true),
  sql: flag(),
  facets: distinct([...FACETS.keys()]),
  /** Facets that are folded. */
  folded: distinct(),
  /** The cursor of the record that is open, and around it what was logged before and after. */
  open: text(),
  around: choice(["", "service", "host", "all"], ""),
  /** Rows as they come. */
  tail: flag(),
});

export type LogsState = StateOf<typeof params.shape>;
