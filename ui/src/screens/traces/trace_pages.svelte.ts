/** Traces, loaded page by page while scrolling. */

import type { TracesAnswer, TraceSummary } from "../../lib/api/types.gen";
import { type QueryParams, get, isAborted, messageOf } from "../../lib/api/client";

const PAGE = 50;

export class TracePages {
  rows = $state.raw<readonly TraceSummary[]>([]);
  /** Whether the first page is loaded. */
  isLoaded = $state(false);
  isLoading = $state(false);
  error = $state<string | null>(null);
  /** Duration of the first request. */
  tookMs = $state<number | null>(null);
  hasMore = $state(false);
  private cursor: string | null = null;
  private params: QueryParams = {};
  private abort = new AbortController();

  /**
   * Start a search. Old rows stay until new ones arrive. Returns a function that aborts it, for use
   * as an effect.
   */
  begin(params: QueryParams): () => void {
    this.params = params;
    this.fetch(null);
    return () => this.abort.abort();
  }

  more = (): void => {
    if (this.cursor !== null && !this.isLoading) this.fetch(this.cursor);
  };

  private fetch(after: string | null): void {
    this.abort.abort();
    const abort = (this.abort = new AbortController());
    const begin = performance.now();
    this.isLoading = true;
    get<TracesAnswer>("api/v1/traces", { ...this.params, limit: PAGE, after }, abort.signal).then(
      (response) => {
        if (abort.signal.aborted) return;
        this.rows = after === null ? response.traces : this.joined(response.traces);
        this.cursor = response.cursor;
        this.hasMore = response.cursor !== null;
        this.isLoaded = true;
        this.isLoading = false;
        this.error = null;
        if (after === null) this.tookMs = performance.now() - begin;
      },
      (error: unknown) => {
        if (abort.signal.aborted || isAborted(error)) return;
        this.error = messageOf(error);
        this.isLoading = false;
        this.cursor = null;
      },
    );
  }

  /**
   * A trace that got a span after its page was fetched may come again on a later page; one that
   * began before its first matching span belongs further down.
   */
  private joined(next: readonly TraceSummary[]): TraceSummary[] {
    const known = new Set(this.rows.map((trace) => trace.trace_id));
    const rows = [...this.rows, ...next.filter((trace) => !known.has(trace.trace_id))];
    const isByTime = this.params["order"] === "newest";
    return isByTime ? rows.sort((one, other) => startOf(other) - startOf(one)) : rows;
  }
}

function startOf(trace: TraceSummary): number {
  return trace.start_unix_nano;
}
