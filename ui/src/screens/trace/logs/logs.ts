/** Log records of a trace and their positions in the waterfall. */

import type { LogRow, LogsAnswer } from "../../../lib/api/types.gen";
import { get } from "../../../lib/api/client";
import { nanosAfter } from "../model/nanoseconds";
import { rowOf } from "../model/rows";
import type { Spans } from "../model/spans";

const PAGE = 1000;
/** Longer lists belong on the logs screen. */
export const LINES_MAX = 10_000;

/** Fetch all records, oldest first, page by page. */
export async function fetchTraceLogs(traceId: string, signal: AbortSignal): Promise<LogRow[]> {
  const found: LogRow[] = [];
  let after: string | null = null;
  do {
    const params = { trace_id: traceId, order: "oldest", limit: PAGE, after };
    const page: LogsAnswer = await get<LogsAnswer>("api/v1/logs", params, signal);
    found.push(...page.logs);
    after = page.cursor;
  } while (after !== null && found.length < LINES_MAX);
  return found;
}

/** Dots sorted by row. A record of a hidden span is drawn at its closed ancestor. */
export interface LogDots {
  readonly row: Int32Array;
  /** Nanoseconds since the start of the trace. */
  readonly at: Float64Array;
  /** Index of the record. */
  readonly line: Int32Array;
}

export function logDots(spans: Spans, rows: Int32Array, lines: readonly LogRow[]): LogDots {
  const dots: { row: number; at: number; line: number }[] = [];
  lines.forEach((log, line) => {
    const index = spans.indexOf.get(log.span_id ?? "");
    const row = index === undefined ? -1 : rowOf(rows, index);
    if (index === undefined || row < 0) return;
    // With only matches visible, the row above may belong to another branch.
    const shown = rows[row]!;
    if (spans.subtreeEnd[shown]! <= index) return;
    dots.push({ row, at: nanosAfter(log.time, spans.begin), line });
  });
  dots.sort((one, other) => one.row - other.row || one.at - other.at);
  return {
    row: Int32Array.from(dots, (dot) => dot.row),
    at: Float64Array.from(dots, (dot) => dot.at),
    line: Int32Array.from(dots, (dot) => dot.line),
  };
}

/** First dot of a row or a later one. */
export function firstDot(dots: LogDots, row: number): number {
  let low = 0;
  let high = dots.row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (dots.row[middle]! < row) low = middle + 1;
    else high = middle;
  }
  return low;
}
