/** What the logs screen shows, as its address has it. */

import { choice, codec, flag, type StateOf, text, texts } from "../../house/codec";
import { columnsField } from "./columns";

/** Which values are counted when nobody says. */
export const FACETS = [
  "service_name",
  "severity",
  "host_name",
  "k8s_pod_name",
  "scope_name",
  "event_name",
] as const;

export const fields = codec({
  /** The search box. */
  q: text(),
  /** `name=value`: has one of the values of each name, and none of `not`. */
  is: texts(),
  not: texts(),
  order: choice(["newest", "oldest"], "newest"),
  columns: columnsField,
  wrap: flag(),
  /** What is there at all: the histogram, the facets, the query as SQL. */
  bars: flag(true),
  side: flag(true),
  sql: flag(),
  facets: texts(FACETS),
  /** Facets that are folded. */
  folded: texts(),
  /** The cursor of the record that is open, and around it what was logged before and after. */
  open: text(),
  around: choice(["", "service", "host", "all"], ""),
  /** Rows as they come. */
  tail: flag(),
});

export type LogsState = StateOf<typeof fields.shape>;
