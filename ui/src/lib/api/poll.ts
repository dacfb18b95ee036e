/**
 * Ask again and again, as long as the page is seen. The next time comes `intervalMs` after the last
 * answer, so that a slow node is never asked twice at once. Gives what ends it, as an effect wants.
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

  // Whoever comes back looks at what is now.
  document.addEventListener("visibilitychange", () => void step(), { signal: abort.signal });
  void step();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}
