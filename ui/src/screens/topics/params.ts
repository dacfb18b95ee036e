/** URL parameters of the topics screen. */

import { choice, codec, flag, text } from "../../lib/router/codec";

export const LISTS = ["topics", "groups"] as const;

export const params = codec({
  show: choice(LISTS, "topics"),
  search: text(),
  /** Also topics that only the node uses. */
  internal: flag(),
});
