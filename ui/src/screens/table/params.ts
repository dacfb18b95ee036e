/** URL parameters of the table screen. */

import { choice, codec, number, text } from "../../lib/router/codec";

export const TABS = ["rows", "changes", "schema", "partitions", "write"] as const;

export const params = codec({
  tab: choice(TABS, "rows"),
  /** Key whose row is shown: the value, or a JSON array if the key has several columns. */
  key: text(),
  /** Partition whose changes are shown; null means all. */
  partition: number(),
});
