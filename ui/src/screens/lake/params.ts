/** What the lake screen shows, as its address names it. */

import { choice, codec, text } from "../../lib/router/codec";

export const TABS = ["snapshots", "partitions", "files", "schema", "properties", "read"] as const;
export const ORDERS = ["newest", "largest", "smallest"] as const;

export const params = codec({
  table: text(),
  tab: choice(TABS, "snapshots"),
  /** The snapshot that is told of in full. */
  snapshot: text(),
  /** Only files of this partition. */
  partition: text(),
  order: choice(ORDERS, "newest"),
  /** The schema that is shown; empty is the current one. */
  schema: text(),
});
