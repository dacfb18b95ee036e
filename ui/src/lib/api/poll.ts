/**
 * Ask again and again, as long as the page is seen. The next time comes `everyMs` after the last
 * answer, so that a slow node is never asked twice at once. Gives what ends it, as an effect wants.
 */
export function repeat(
  everyMs: number,
  ask: (signal: AbortSignal) => Promise<unknown>,
): () => void {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isAsking = false;

  async function step(): Promise<void> {
    clearTimeout(timer);
    if (abort.signal.aborted || isAsking || document.hidden) return;
    isAsking = true;
    try {
      await ask(abort.signal);
    } finally {
      isAsking = false;
      if (!abort.signal.aborted) timer = setTimeout(() => void step(), everyMs);
    }
  }

  // Whoever comes back looks at what is now.
  document.addEventListener("visibilitychange", () => void step(), { signal: abort.signal });
  void step();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}
