/** Data that a component loads from the node. */

import { isAborted, messageOf } from "./client";

/**
 *     const logs = new Resource<Logs>();
 *     $effect(() => logs.load((signal) => get("api/v1/logs", { search: url.params.search }, signal)));
 *     {#if logs.error} … {:else if logs.data} …
 *
 * The old data stays while new data loads, so that the page does not jump.
 */
export class Resource<T> {
  data = $state.raw<T | undefined>();
  error = $state<string | null>(null);
  isLoading = $state(false);
  /** How long the last load took. */
  tookMs = $state<number | null>(null);

  /** Start a load. Returns a function that aborts it, for use as an effect. */
  load(fetchData: (signal: AbortSignal) => Promise<T>): () => void {
    const abort = new AbortController();
    const begin = performance.now();
    this.isLoading = true;
    fetchData(abort.signal).then(
      (data) => {
        if (abort.signal.aborted) return;
        this.data = data;
        this.error = null;
        this.tookMs = performance.now() - begin;
        this.isLoading = false;
      },
      (error: unknown) => {
        if (abort.signal.aborted || isAborted(error)) return;
        this.error = messageOf(error);
        this.isLoading = false;
      },
    );
    return () => abort.abort();
  }

  clear(): void {
    this.data = undefined;
    this.error = null;
  }
}
