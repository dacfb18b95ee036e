/** What a panel asks, and what comes back. */

import type { LogsAnswer, SqlAnswer } from "../../../lib/api/types.gen";
import { get, send } from "../../../lib/api/client";
import { askMetric, STEPS } from "../../../lib/metrics/fetch_metric";
import { type Drawn, unitOf } from "../../../lib/metrics/metric";
import { asked, type Stretch, stepOf } from "../../../lib/time/range";
import { Turns } from "../../../lib/api/semaphore";
import type { DashPanel } from "../model/dashboard";
import { hasTime, linesOf, type Named, namedOf } from "./row_series";
import { type Chosen, inLogs, inMetric, inSql } from "../model/variables";

const AT_ONCE = 4;
const ROWS_MAX = 10_000;
const turns = new Turns(AT_ONCE);

export type PanelAnswer =
  | {
      readonly kind: "lines";
      readonly drawn: Drawn;
      readonly unit: string;
      readonly stretch: Stretch;
    }
  | { readonly kind: "rows"; readonly rows: SqlAnswer }
  | { readonly kind: "named"; readonly named: readonly Named[]; readonly unit: string }
  | { readonly kind: "logs"; readonly logs: LogsAnswer }
  | { readonly kind: "nothing" };

export interface Surroundings {
  readonly chosen: Chosen;
  /** All values of the variables. */
  readonly known: Chosen;
  readonly stretch: Stretch;
}

export function askPanel(
  panel: DashPanel,
  around: Surroundings,
  signal: AbortSignal,
): Promise<PanelAnswer> {
  return turns.take(signal, () => answerOf(panel, around, signal));
}

async function answerOf(
  panel: DashPanel,
  { chosen, known, stretch }: Surroundings,
  signal: AbortSignal,
): Promise<PanelAnswer> {
  if (panel.kind === "logs") {
    if (!panel.logs) return { kind: "nothing" };
    const { search, severity, filter, exclude } = inLogs(panel.logs, chosen);
    const wanted = { search, severity, filter, exclude, limit: panel.limit, ...asked(stretch) };
    return { kind: "logs", logs: await get("api/v1/logs", wanted, signal) };
  }
  if (panel.metric && panel.kind !== "table") {
    if (!panel.metric.name) return { kind: "nothing" };
    const drawn = await askMetric(inMetric(panel.metric, chosen), stretch, signal);
    const unit = panel.unit || unitOf(drawn.type, drawn.unit, panel.metric.aggregates[0] ?? "");
    return { kind: "lines", drawn, unit: unit ?? "", stretch };
  }
  if (!panel.sql.trim()) return { kind: "nothing" };
  const sql = inSql(panel.sql, chosen, known, stretch, stepOf(stretch, STEPS));
  const rows = await send<SqlAnswer>(
    "POST",
    "api/v1/sql",
    { sql, details: true, rows_max: ROWS_MAX },
    signal,
  );
  if (panel.kind === "table") return { kind: "rows", rows };
  if (panel.kind === "series" || hasTime(rows)) {
    return { kind: "lines", drawn: linesOf(rows), unit: panel.unit, stretch };
  }
  return { kind: "named", named: namedOf(rows), unit: panel.unit };
}
