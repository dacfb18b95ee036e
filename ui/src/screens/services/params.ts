/** What the services screen shows, as its address has it. */

import { choice, codec, flag, type StateOf, text } from "../../lib/router/codec";

export const SORTS = ["errors", "name", "rate", "p50", "p95", "p99", "logs"] as const;
export type Sort = (typeof SORTS)[number];

export const TABS = ["table", "map", "calls"] as const;

export const params = codec({
  tab: choice(TABS, "table"),
  sort: choice(SORTS, "errors"),
  /** The other way round. */
  up: flag(),
  /** A part of the name. */
  name: text(),
  /** The service that is open. */
  open: text(),
  /** All failures, also those that only came of others. */
  all: flag(),
});

export type ServicesState = StateOf<typeof params.shape>;
