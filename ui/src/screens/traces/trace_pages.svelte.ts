/** Traces page by page, as far as somebody has scrolled. */

import type { TracesAnswer, TraceSummary } from "../../lib/api/types.gen";
import { type Asked, get, isAborted, messageOf } from "../../lib/api/client";

const PAGE = 50;

export class Pages {
  rows = $state.raw<readonly TraceSummary[]>([]);
  /** Has the first page come? */
  isKnown = $state(false);
  isAsking = $state(false);
  error = $state<string | null>(null);
  /** How long the search took, for its first page. */
  tookMs = $state<number | null>(null);
  hasMore = $state(false);
  private cursor: string | null = null;
  private asked: Asked = {};
  private abort = new AbortController();

  /** Ask anew. The old rows stay until others come. Gives what ends it, as an effect wants. */
  begin(asked: Asked): () => void {
    this.asked = asked;
    this.ask(null);
    return () => this.abort.abort();
  }

  more = (): void => {
    if (this.cursor !== null && !this.isAsking) this.ask(this.cursor);
  };

  private ask(after: string | null): void {
    this.abort.abort();
    const abort = (this.abort = new AbortController());
    const begin = performance.now();
    this.isAsking = true;
    get<TracesAnswer>("api/v1/traces", { ...this.asked, limit: PAGE, after }, abort.signal).then(
      (answer) => {
        if (abort.signal.aborted) return;
        this.rows = after === null ? answer.traces : joined(this.rows, answer.traces);
        this.cursor = answer.cursor;
        this.hasMore = answer.cursor !== null;
        this.isKnown = true;
        this.isAsking = false;
        this.error = null;
        if (after === null) this.tookMs = performance.now() - begin;
      },
      (error: unknown) => {
        if (abort.signal.aborted || isAborted(error)) return;
        this.error = messageOf(error);
        this.isAsking = false;
        this.cursor = null;
      },
    );
  }
}

/** A trace that got another span since its page was asked may come again with a later one. */
function joined(before: readonly TraceSummary[], next: readonly TraceSummary[]): TraceSummary[] {
  const known = new Set(before.map((trace) => trace.trace_id));
  return [...before, ...next.filter((trace) => !known.has(trace.trace_id))];
}
