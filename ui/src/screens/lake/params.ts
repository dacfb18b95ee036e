/** URL parameters of the lake screen. */

import { choice, codec, text } from "../../lib/router/codec";

export const TABS = ["snapshots", "partitions", "files", "schema", "properties", "read"] as const;
export const ORDERS = ["newest", "largest", "smallest"] as const;

export const params = codec({
  table: text(),
  tab: choice(TABS, "snapshots"),
  /** Expanded snapshot. */
  snapshot: text(),
  /** Partition filter of the file list. */
  partition: text(),
  order: choice(ORDERS, "newest"),
  /** Selected schema; empty means the current one. */
  schema: text(),
});
