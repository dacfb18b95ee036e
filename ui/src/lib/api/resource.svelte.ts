/** A question that a part of a screen asks, and the last answer to it. */

import { isAborted, messageOf } from "./client";

/**
 *     const found = new Question<Logs>();
 *     $effect(() => found.ask((signal) => get("api/v1/logs", { search: at.now.search }, signal)));
 *     {#if found.error} … {:else if found.answer} …
 *
 * The old answer stays while a new one is awaited, so that nothing jumps.
 */
export class Question<T> {
  answer = $state.raw<T | undefined>();
  error = $state<string | null>(null);
  isAsking = $state(false);
  /** How long the last answer took. */
  tookMs = $state<number | null>(null);

  /** Ask, and forget what was asked before. Gives what ends it, as an effect wants. */
  ask(asking: (signal: AbortSignal) => Promise<T>): () => void {
    const abort = new AbortController();
    const begin = performance.now();
    this.isAsking = true;
    asking(abort.signal).then(
      (answer) => {
        if (abort.signal.aborted) return;
        this.answer = answer;
        this.error = null;
        this.tookMs = performance.now() - begin;
        this.isAsking = false;
      },
      (error: unknown) => {
        if (abort.signal.aborted || isAborted(error)) return;
        this.error = messageOf(error);
        this.isAsking = false;
      },
    );
    return () => abort.abort();
  }

  forget(): void {
    this.answer = undefined;
    this.error = null;
  }
}
