/** What is looked at of a trace, as an address has it. */

import { choice, codec, flag, number, text, texts } from "../../lib/router/codec";

export const TABS = ["waterfall", "flame", "statistics", "logs"] as const;
export type Tab = (typeof TABS)[number];
export const PANEL_TABS = ["attributes", "events", "links", "logs"] as const;
export type PanelTab = (typeof PANEL_TABS)[number];

export const params = codec({
  tab: choice(TABS, "waterfall"),
  /** The span that is chosen, and whether its panel is open. */
  span: text(),
  panel: flag(true),
  show: choice(PANEL_TABS, "attributes"),
  /** Spans from that depth on are closed, except these, which are the other way round. */
  level: number(),
  turned: texts(),
  /** The window of time, in nanoseconds after the begin; null is all of it. */
  low: number(),
  high: number(),
  /** What is found, and whether only that is shown. */
  q: text(),
  only: flag(),
  critical: flag(),
  /** The statistics: by what, in which order. */
  by: choice(["service", "operation"], "operation"),
  sort: choice(["name", "count", "failed", "self", "total", "p50", "p95", "max"], "self"),
  rising: flag(),
  /** The box of the flame graph that is looked at, by a span of it. */
  box: text(),
});
