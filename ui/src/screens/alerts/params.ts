/** URL parameters of the alerts screen. */

import { choice, codec, text } from "../../lib/router/codec";

export const LISTS = ["alerts", "rules", "history"] as const;
export const STATES = ["all", "firing", "pending", "resolved", "errors"] as const;

export const params = codec({
  show: choice(LISTS, "alerts"),
  state: choice(STATES, "all"),
  search: text(),
  /** The open rule, by its group and name. */
  group: text(),
  rule: text(),
});
