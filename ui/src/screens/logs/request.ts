/** Request parameters of the current filters. */

import type { QueryParams } from "../../lib/api/client";
import { rangeParams, type TimeRange } from "../../lib/time/range";
import type { LogsState } from "./params";

export type LogsFilter = Pick<LogsState, "q" | "is" | "not">;

export function requestParams({ q, is, not }: LogsFilter, range: TimeRange): QueryParams {
  return { ...rangeParams(range), query: q, filter: is, exclude: not };
}
