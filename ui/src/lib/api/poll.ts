/**
 * Run a request repeatedly while the page is visible. The next run starts `intervalMs` after the
 * last one ended, so a slow node never has two. Returns a function that stops it, for use as an
 * effect.
 */
export function poll(
  intervalMs: number,
  run: (signal: AbortSignal) => Promise<unknown>,
): () => void {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isRunning = false;

  async function step(): Promise<void> {
    clearTimeout(timer);
    if (abort.signal.aborted || isRunning || document.hidden) return;
    isRunning = true;
    try {
      await run(abort.signal);
    } finally {
      isRunning = false;
      if (!abort.signal.aborted) timer = setTimeout(() => void step(), intervalMs);
    }
  }

  // Run at once when the page becomes visible again.
  document.addEventListener("visibilitychange", () => void step(), { signal: abort.signal });
  void step();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}
