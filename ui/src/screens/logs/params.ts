/** URL parameters of the logs screen. */

import { choice, codec, distinct, flag, type StateOf, text } from "../../lib/router/codec";
import { columnsField } from "./list/columns";

/** Default facets and their display names. */
export const FACETS = new Map([
  ["service_name", "Service"],
  ["severity", "Severity"],
  ["host_name", "Host"],
  ["k8s_pod_name", "Pod"],
  ["scope_name", "Scope"],
  ["event_name", "Event"],
]);

export const params = codec({
  /** Search text. */
  q: text(),
  /** `name=value`: matches any included value of each name, and no excluded one. */
  is: distinct(),
  not: distinct(),
  order: choice(["newest", "oldest"], "newest"),
  columns: columnsField,
  wrap: flag(),
  /** Visibility of the histogram, the facets and the SQL preview. */
  bars: flag(true),
  side: flag(true),
  sql: flag(),
  facets: distinct([...FACETS.keys()]),
  /** Collapsed facets. */
  folded: distinct(),
  /** Cursor of the open record, and the scope of its surrounding logs. */
  open: text(),
  around: choice(["", "service", "host", "all"], ""),
  /** Live tail. */
  tail: flag(),
  /** Patterns instead of records. */
  patterns: flag(),
});

export type LogsState = StateOf<typeof params.shape>;
