/** What the explorer of metrics shows, as its address has it. */

import { choice, codec, flag, text, texts } from "../../lib/router/codec";

export const LOOKS = ["lines", "stacked", "bars"] as const;

export const params = codec({
  /** Part of a name or of a description, in the list. */
  search: text(),
  metric: text(),
  /** Only where a name is used for several kinds. */
  type: text(),
  agg: texts(),
  by: texts(),
  /** `name=value` */
  filter: texts(),
  not: texts(),
  /** Empty is one that fits. */
  step: text(),
  look: choice(LOOKS, "lines"),
  exemplars: flag(true),
  /** Lines that are shown; none is all of them. */
  only: texts(),
});
