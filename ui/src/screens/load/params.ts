/** URL parameters of the load screen. */

import { choice, codec, text } from "../../lib/router/codec";

export const SHOWN = ["files", "history", "definitions"] as const;

export const params = codec({
  show: choice(SHOWN, "files"),
  stage: text(),
  /** Folder or file whose files are listed. */
  path: text(),
  /** File that is previewed. */
  file: text(),
  /** Table filter of the history. */
  table: text(),
});
