/** URL parameters of the dashboard screens. */

import { codec, flag, text, texts } from "../../lib/router/codec";

export const params = codec({
  /** Selected variable values: `name=value`, repeated for several; `name=` means all. */
  var: texts(),
  /** Edit mode. */
  edit: flag(),
  /** Panel shown alone. */
  panel: text(),
});

export const listParams = codec({ search: text() });
