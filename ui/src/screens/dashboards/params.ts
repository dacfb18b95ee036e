/** What the screens of dashboards show, as their address has it. */

import { codec, flag, text, texts } from "../../lib/router/codec";

export const params = codec({
  /** What is chosen of variables: `name=value`, several by repetition; `name=` is all of them. */
  var: texts(),
  /** May panels be moved and changed? */
  edit: flag(),
  /** The panel that is shown alone. */
  panel: text(),
});

export const listParams = codec({ search: text() });
