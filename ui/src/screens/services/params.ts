/** URL parameters of the services screen. */

import { choice, codec, flag, type StateOf, text } from "../../lib/router/codec";

export const SORTS = ["errors", "name", "rate", "p50", "p95", "p99", "logs"] as const;
export type Sort = (typeof SORTS)[number];

export const TABS = ["table", "map", "calls"] as const;

export const params = codec({
  tab: choice(TABS, "table"),
  sort: choice(SORTS, "errors"),
  /** Reversed order. */
  up: flag(),
  /** Name filter. */
  name: text(),
  /** Expanded service. */
  open: text(),
  /** What the expanded service is compared with. */
  compare: text(),
  /** Show all failures, including those caused by others. */
  all: flag(),
});

export type ServicesState = StateOf<typeof params.shape>;
