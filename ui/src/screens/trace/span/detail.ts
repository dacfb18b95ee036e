/** All data of one span. */

import { request } from "../../../lib/api/client";
import { parseExact } from "../model/nanoseconds";

export interface SpanEvent {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface SpanLink {
  readonly trace_id: string;
  readonly span_id: string;
  readonly trace_state: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** The columns that the panel uses. */
export interface SpanDetail extends Readonly<Record<string, unknown>> {
  readonly time: string;
  readonly status_code: string;
  readonly status_message: string | null;
  readonly scope_name: string | null;
  readonly scope_version: string | null;
  readonly trace_state: string | null;
  readonly attributes: Readonly<Record<string, string>>;
  readonly resource_attributes: Readonly<Record<string, string>>;
  readonly scope_attributes: Readonly<Record<string, string>>;
  readonly events: readonly SpanEvent[];
  readonly links: readonly SpanLink[];
  readonly dropped_attributes_count: number;
  readonly dropped_events_count: number;
  readonly dropped_links_count: number;
}

export interface SpanAnswer {
  readonly span: SpanDetail;
  readonly event_offset_nano: readonly number[];
}

export async function fetchSpan(
  traceId: string,
  spanId: string,
  signal: AbortSignal,
): Promise<SpanAnswer> {
  const path = `api/v1/traces/${traceId}/spans/${encodeURIComponent(spanId)}`;
  return parseExact(await (await request(path, { signal })).text()) as SpanAnswer;
}

/** Fetch a subtree with all data. */
export async function fetchSubtree(
  traceId: string,
  spanId: string,
): Promise<readonly SubtreeLine[]> {
  const path = `api/v1/traces/${traceId}?below=${encodeURIComponent(spanId)}`;
  return (parseExact(await (await request(path)).text()) as { lines: SubtreeLine[] }).lines;
}

export interface SubtreeLine {
  readonly span: SpanDetail;
  readonly depth: number;
  readonly offset_nano: number;
  readonly duration_nano: number;
  readonly self_nano: number;
}
