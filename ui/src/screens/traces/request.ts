/** Request parameters of the traces screen. */

import type { QueryParams } from "../../lib/api/client";
import { rangeParams, type TimeRange } from "../../lib/time/range";
import type { TracesState } from "./params";

type Fitting = Pick<
  TracesState,
  "q" | "is" | "not" | "errors" | "roots" | "through" | "min" | "max"
>;

/** Parameters of the trace search. */
export function traceParams(state: Fitting, range: TimeRange): QueryParams {
  return {
    ...rangeParams(range),
    query: state.q,
    filter: state.is,
    exclude: state.not,
    errors: state.errors,
    roots: state.roots,
    through: state.through,
    min_trace_ms: state.min,
    max_trace_ms: state.max,
  };
}

/** Parameters of the facet counts. Conditions on whole traces do not apply to spans. */
export function facetParams({ errors, roots }: Fitting, range: TimeRange): QueryParams {
  return { ...rangeParams(range), errors, roots };
}

/** The search, carried into the opened trace to mark its matches. */
export function searchParams(q: string): Record<string, string> {
  return q.trim() ? { q } : {};
}

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["", 1],
  ["ns", 1e-6],
  ["us", 1e-3],
  ["µs", 1e-3],
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["min", 60_000],
  ["h", 3_600_000],
]);

/** Parse `250`, `250ms`, `1.5 s` or `2m` into milliseconds; null if invalid. */
export function parseMillis(typed: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([a-zµ]*)$/.exec(typed.trim().toLowerCase());
  const unit = UNIT_MS.get(match?.[2] ?? "none");
  return match && unit ? Number((Number(match[1]) * unit).toPrecision(12)) : null;
}

/** The inverse: milliseconds as typed. */
export function formatMillis(ms: number | null): string {
  if (ms === null) return "";
  const digits = (value: number) => String(Number(value.toPrecision(6)));
  if (ms >= 60_000 && ms % 60_000 === 0) return `${digits(ms / 60_000)}m`;
  if (ms >= 1000) return `${digits(ms / 1000)}s`;
  if (ms >= 1 || ms === 0) return `${digits(ms)}ms`;
  return `${digits(ms * 1000)}us`;
}
