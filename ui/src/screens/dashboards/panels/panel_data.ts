/** Fetch the data of a panel. */

import type { LogsAnswer, SqlAnswer } from "../../../lib/api/types.gen";
import { get, send } from "../../../lib/api/client";
import { fetchMetric, STEPS } from "../../../lib/metrics/fetch_metric";
import { type ChartData, unitOf } from "../../../lib/metrics/metric";
import { rangeParams, type TimeRange, roundStepS } from "../../../lib/time/range";
import { Semaphore } from "../../../lib/api/semaphore";
import type { PanelModel } from "../model/dashboard";
import { hasTime, rowLines, type NamedValue, rowValues } from "./row_series";
import {
  type VariableValues,
  substituteLogs,
  substituteMetric,
  substituteSql,
} from "../model/variables";

const CONCURRENT_MAX = 4;
const ROWS_MAX = 10_000;
const slots = new Semaphore(CONCURRENT_MAX);

export type PanelData =
  | {
      readonly kind: "lines";
      readonly drawn: ChartData;
      readonly unit: string;
      readonly range: TimeRange;
    }
  | { readonly kind: "rows"; readonly rows: SqlAnswer }
  | { readonly kind: "named"; readonly named: readonly NamedValue[]; readonly unit: string }
  | { readonly kind: "logs"; readonly logs: LogsAnswer }
  | { readonly kind: "nothing" };

export interface PanelContext {
  readonly chosen: VariableValues;
  /** All known values of the variables. */
  readonly known: VariableValues;
  readonly range: TimeRange;
}

export function fetchPanel(
  panel: PanelModel,
  around: PanelContext,
  signal: AbortSignal,
): Promise<PanelData> {
  return slots.run(signal, () => fetchData(panel, around, signal));
}

async function fetchData(
  panel: PanelModel,
  { chosen, known, range }: PanelContext,
  signal: AbortSignal,
): Promise<PanelData> {
  if (panel.kind === "logs") {
    if (!panel.logs) return { kind: "nothing" };
    const { search, severity, filter, exclude } = substituteLogs(panel.logs, chosen);
    const query = { search, severity, filter, exclude, limit: panel.limit, ...rangeParams(range) };
    return { kind: "logs", logs: await get("api/v1/logs", query, signal) };
  }
  if (panel.metric && panel.kind !== "table") {
    if (!panel.metric.name) return { kind: "nothing" };
    const drawn = await fetchMetric(substituteMetric(panel.metric, chosen), range, signal);
    const unit = panel.unit || unitOf(drawn.type, drawn.unit, panel.metric.aggregates[0] ?? "");
    return { kind: "lines", drawn, unit: unit ?? "", range };
  }
  if (!panel.sql.trim()) return { kind: "nothing" };
  const sql = substituteSql(panel.sql, chosen, known, range, roundStepS(range, STEPS));
  const rows = await send<SqlAnswer>(
    "POST",
    "api/v1/sql",
    { sql, details: true, rows_max: ROWS_MAX },
    signal,
  );
  if (panel.kind === "table") return { kind: "rows", rows };
  if (panel.kind === "series" || hasTime(rows)) {
    return { kind: "lines", drawn: rowLines(rows), unit: panel.unit, range };
  }
  return { kind: "named", named: rowValues(rows), unit: panel.unit };
}
