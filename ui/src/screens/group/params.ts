/** URL parameters of the consumer group screen. */

import { codec, text } from "../../lib/router/codec";

export const params = codec({
  /** Id of the group: any text, so it is not part of the path. */
  name: text(),
  /** Topic whose offsets are shown; empty means all. */
  topic: text(),
});
