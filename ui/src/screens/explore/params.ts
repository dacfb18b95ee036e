/** URL parameters of the metrics screen. */

import { choice, codec, flag, text, texts } from "../../lib/router/codec";

export const LOOKS = ["lines", "stacked", "bars", "heatmap"] as const;

export const params = codec({
  /** Search in the metric list. */
  search: text(),
  metric: text(),
  /** Only if a name is used for several types. */
  type: text(),
  agg: texts(),
  by: texts(),
  /** `name=value` */
  filter: texts(),
  not: texts(),
  /** Empty for automatic. */
  step: text(),
  look: choice(LOOKS, "lines"),
  exemplars: flag(true),
  /** Visible lines; empty means all. */
  only: texts(),
});
