/** Links from a panel to the screens that show the same data. */

import { STEPS } from "../../../lib/metrics/fetch_metric";
import { linkTo } from "../../../lib/router/router.svelte";
import { roundStepS } from "../../../lib/time/range";
import type { PanelContext } from "./panel_data";
import type { PanelModel } from "../model/dashboard";
import { substituteLogs, substituteMetric, substituteSql } from "../model/variables";

export function panelLinks(
  panel: PanelModel,
  { chosen, known, range }: PanelContext,
): { name: string; href: string }[] {
  if (panel.kind === "logs" && panel.logs) {
    const { search, severity, filter, exclude } = substituteLogs(panel.logs, chosen);
    const q = [search, severity && `severity:${severity}`].filter(Boolean).join(" ");
    const query = { ...(q && { q }), is: filter, not: exclude };
    return [{ name: "Open in logs", href: linkTo("logs", query) }];
  }
  if (panel.metric && panel.kind !== "table") {
    const metric = substituteMetric(panel.metric, chosen);
    const query = {
      metric: metric.name,
      ...(metric.type && { type: metric.type }),
      agg: metric.aggregates,
      by: metric.by,
      filter: metric.filter,
      not: metric.exclude,
      ...(metric.step && { step: metric.step }),
      ...(panel.look !== "lines" && { look: panel.look }),
    };
    return [{ name: "Open in metrics", href: linkTo("explore", query) }];
  }
  if (!panel.sql) return [];
  const q = substituteSql(panel.sql, chosen, known, range, roundStepS(range, STEPS));
  return [{ name: "Open in SQL", href: linkTo("sql", { q }) }];
}
