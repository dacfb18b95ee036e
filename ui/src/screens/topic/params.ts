/** URL parameters of the topic screen. */

import { choice, codec, flag, number, text } from "../../lib/router/codec";

export const TABS = ["messages", "partitions", "groups", "configuration"] as const;
export const STARTS = ["newest", "oldest", "offset", "time"] as const;

export const params = codec({
  tab: choice(TABS, "messages"),
  /** Partition whose messages are shown; null means all. */
  partition: number(),
  /** Where messages begin. */
  start: choice(STARTS, "newest"),
  offset: number(),
  /** An age such as `15m`, or a time with a zone. */
  time: text(),
  search: text(),
  /** New messages are shown as they come. */
  live: flag(true),
  /** Open message: `partition:offset`. */
  open: text(),
});
