/** Limits the number of concurrent requests. */

export class Semaphore {
  private waiting: (() => void)[] = [];
  private running = 0;

  constructor(private readonly max: number) {}

  /** Run a task when a slot is free; rejects if aborted while waiting. */
  async run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    await this.acquire(signal);
    try {
      return await task();
    } finally {
      this.running -= 1;
      this.waiting.shift()?.();
    }
  }

  private acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.running < this.max) {
      this.running += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const proceed = () => {
        signal.removeEventListener("abort", onAbort);
        this.running += 1;
        resolve();
      };
      const onAbort = () => {
        this.waiting = this.waiting.filter((each) => each !== proceed);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.waiting.push(proceed);
    });
  }
}
