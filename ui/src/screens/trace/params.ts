/** URL parameters of the trace screen. */

import { choice, codec, flag, number, text, texts } from "../../lib/router/codec";

export const TABS = ["waterfall", "flame", "statistics", "logs", "compare"] as const;
export type Tab = (typeof TABS)[number];
export const PANEL_TABS = ["attributes", "events", "links", "logs"] as const;
export type PanelTab = (typeof PANEL_TABS)[number];

export const params = codec({
  tab: choice(TABS, "waterfall"),
  /** Selected span, and whether its panel is open. */
  span: text(),
  panel: flag(true),
  show: choice(PANEL_TABS, "attributes"),
  /** Spans from this depth on are closed; `turned` spans are inverted. */
  level: number(),
  turned: texts(),
  /** Time window in nanoseconds since the start; null for all. */
  low: number(),
  high: number(),
  /** Find query, and whether only matches are visible. */
  q: text(),
  only: flag(),
  critical: flag(),
  /** Grouping and order of the statistics. */
  by: choice(["service", "operation"], "operation"),
  sort: choice(["name", "count", "failed", "self", "total", "p50", "p95", "max"], "self"),
  rising: flag(),
  /** Trace to compare with, which changes are shown, and their order. */
  with: text(),
  diff: choice(["all", "added", "removed", "slower", "faster", "same"], "all"),
  largest: flag(),
  /** Zoomed box of the flame graph, by one of its spans. */
  box: text(),
});
