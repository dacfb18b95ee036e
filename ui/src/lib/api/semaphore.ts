/** Turns: only so many questions are asked at the same time, the others wait for theirs. */

export class Turns {
  private waiting: (() => void)[] = [];
  private taken = 0;

  constructor(private readonly max: number) {}

  /** Ask when it is our turn; not at all when nobody waits for it any more. */
  async take<T>(signal: AbortSignal, asking: () => Promise<T>): Promise<T> {
    await this.turn(signal);
    try {
      return await asking();
    } finally {
      this.taken -= 1;
      this.waiting.shift()?.();
    }
  }

  private turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.taken < this.max) {
      this.taken += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const mine = () => {
        signal.removeEventListener("abort", leave);
        this.taken += 1;
        resolve();
      };
      const leave = () => {
        this.waiting = this.waiting.filter((each) => each !== mine);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.waiting.push(mine);
    });
  }
}
