/** Links from a trace to other screens. */

import { linkTo } from "../../lib/router/router.svelte";
import { fixedRange } from "../../lib/time/range";
import type { Spans } from "./model/spans";

const MARGIN_MS = 60_000;

/** Time range of the trace with a margin. */
function around(spans: Spans): { from: string; to: string } {
  const sinceMs = Date.parse(spans.begin);
  const { from, to } = fixedRange({
    sinceMs: sinceMs - MARGIN_MS,
    untilMs: sinceMs + spans.total / 1e6 + MARGIN_MS,
  });
  return { from, to };
}

/** Logs with these values: columns, attributes, or `resource.` attributes. */
export function logsWith(spans: Spans, ...pairs: string[]): string {
  return linkTo("logs", { ...around(spans), is: pairs });
}

/** Traces with a span that has these values. */
export function tracesWith(spans: Spans, ...pairs: string[]): string {
  return linkTo("traces", { ...around(spans), is: pairs });
}
