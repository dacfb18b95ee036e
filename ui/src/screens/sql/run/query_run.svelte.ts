/** A running query and its last result. */

import { ApiError, request, isAborted, messageOf } from "../../../lib/api/client";
import { type QueryResult, readArrow } from "./arrow_stream";
import { isStatement } from "./doors";

export interface Query {
  readonly text: string;
  readonly engine: "own" | "spark";
  readonly rowsMax: number;
}

export interface Outcome {
  readonly tookMs: number;
  readonly rows: number | null;
  readonly error: string;
}

const TICK_MS = 100;

export class QueryRun {
  result = $state.raw<QueryResult | undefined>();
  /** Query of the current result or error. */
  query = $state.raw<Query | undefined>();
  error = $state<string | null>(null);
  isRunning = $state(false);
  wasCancelled = $state(false);
  bytes = $state(0);
  tookMs = $state(0);
  private abort: AbortController | undefined;

  /**
   * Run a query; the previous one is aborted, also on the node. Returns a function that aborts it,
   * for use as an effect.
   */
  run(query: Query, onend: (outcome: Outcome) => void): () => void {
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    const begin = performance.now();
    const took = () => performance.now() - begin;
    Object.assign(this, { isRunning: true, wasCancelled: false, bytes: 0, tookMs: 0 });
    const clock = setInterval(() => (this.tookMs = took()), TICK_MS);
    const end = (error: string | null, answer?: QueryResult) => {
      clearInterval(clock);
      if (this.abort !== abort) return;
      Object.assign(this, { isRunning: false, error, tookMs: took(), query });
      if (answer) this.result = answer;
    };
    this.fetch(query, abort.signal).then(
      (answer) => {
        if (abort.signal.aborted) return;
        end(null, answer);
        onend({ tookMs: took(), rows: answer.table.numRows, error: "" });
      },
      (error: unknown) => {
        if (abort.signal.aborted || isAborted(error)) return end(null);
        end(messageOf(error));
        onend({ tookMs: took(), rows: null, error: messageOf(error) });
      },
    );
    return () => abort.abort();
  }

  /** Cancel: the node stops the query when the connection closes. */
  cancel(): void {
    this.abort?.abort();
    this.isRunning = false;
    this.wasCancelled = true;
  }

  clear(): void {
    this.abort?.abort();
    Object.assign(this, { result: undefined, query: undefined, error: null, isRunning: false });
  }

  private async fetch(query: Query, signal: AbortSignal): Promise<QueryResult> {
    const answer = isStatement(query.text)
      ? await post("api/v1/statements", { sql: query.text, format: "arrow" }, signal)
      : await postSql(
          query,
          "arrow",
          { details: true, parts: true, rows_max: query.rowsMax },
          signal,
        );
    return readArrow(answer, (bytes) => (this.bytes = bytes));
  }
}

export type Format = "arrow" | "csv" | "parquet" | "json";

/** Send a query; the response is in one of the node's formats. */
export function postSql(
  query: Pick<Query, "text" | "engine">,
  format: Format,
  more: Record<string, unknown> = {},
  signal?: AbortSignal,
): Promise<Response> {
  const body = {
    sql: query.text,
    format,
    ...(query.engine === "spark" && { engine: "spark" }),
    ...more,
  };
  return post("api/v1/sql", body, signal);
}

function post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  return request(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

/** Export the whole result: the query runs again. */
export async function exportResult(
  query: Pick<Query, "text" | "engine">,
  format: "csv" | "parquet" | "arrow",
  signal: AbortSignal,
): Promise<Blob> {
  const answer = await postSql(query, format, {}, signal);
  try {
    return await answer.blob();
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(
      "too_large",
      "The result is incomplete: it exceeds query.rows_max, or the node stopped. " +
        "Add a LIMIT, or aggregate.",
    );
  }
}
