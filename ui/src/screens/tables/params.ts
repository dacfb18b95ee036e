/** URL parameters of the tables screen. */

import { codec, text } from "../../lib/router/codec";

export const params = codec({
  search: text(),
});
