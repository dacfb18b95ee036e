/** Fetch the values of all variables. */

import type { LabelsAnswer, SqlAnswer } from "../../../lib/api/types.gen";
import { get, send } from "../../../lib/api/client";
import { rangeParams, type TimeRange, roundStepS } from "../../../lib/time/range";
import type { VariableModel } from "./dashboard";
import { textOf } from "../panels/row_series";
import { type VariableValues, substituteSql } from "./variables";

const VALUES_MAX = 500;

/** Values by variable, and errors of those that failed. */
export interface LoadedValues {
  readonly known: VariableValues;
  readonly errors: Readonly<Record<string, string>>;
}

export async function fetchVariableValues(
  variables: readonly VariableModel[],
  range: TimeRange,
  signal: AbortSignal,
): Promise<LoadedValues> {
  const errors: Record<string, string> = {};
  const pairs = await Promise.all(
    variables.map(async (variable): Promise<[string, readonly string[]]> => {
      try {
        return [variable.name, await valuesOf(variable, range, signal)];
      } catch (error) {
        if (signal.aborted) throw error;
        errors[variable.name] = error instanceof Error ? error.message : String(error);
        return [variable.name, []];
      }
    }),
  );
  return { known: Object.fromEntries(pairs), errors };
}

async function valuesOf(
  variable: VariableModel,
  range: TimeRange,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (variable.kind === "list") return variable.values;
  if (variable.kind === "sql") {
    if (!variable.sql.trim()) return [];
    const sql = substituteSql(variable.sql, {}, {}, range, roundStepS(range, 1));
    const body = { sql, details: true, rows_max: VALUES_MAX };
    const { rows } = await send<SqlAnswer>("POST", "api/v1/sql", body, signal);
    return [...new Set(rows.map((row) => textOf(row[0])).filter(Boolean))].sort();
  }
  if (!variable.metric || !variable.of) return [];
  const { labels } = await get<LabelsAnswer>(
    "api/v1/metrics/labels",
    { name: variable.metric, limit: VALUES_MAX, ...rangeParams(range) },
    signal,
  );
  const name = variable.of === "service_name" ? "resource.service.name" : variable.of;
  const found = labels.find((label) => label.name === name)?.values ?? [];
  return found.map(([value]) => value).sort();
}
