import { describe, expect, it } from "vitest";

import { Semaphore } from "./semaphore";

describe("Semaphore", () => {
  it("limits concurrency, and runs every task", async () => {
    const semaphore = new Semaphore(2);
    const { signal } = new AbortController();
    let now = 0;
    let most = 0;
    const asked = Array.from({ length: 9 }, (_, i) =>
      semaphore.run(signal, async () => {
        now += 1;
        most = Math.max(most, now);
        await Promise.resolve();
        now -= 1;
        return i;
      }),
    );
    expect(await Promise.all(asked)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(most).toBe(2);
  });

  it("skips aborted tasks and continues after a failure", async () => {
    const semaphore = new Semaphore(1);
    const stay = new AbortController().signal;
    const leaving = new AbortController();
    const first = semaphore.run(stay, () => Promise.reject(new Error("failed")));
    let isAsked = false;
    const second = semaphore.run(leaving.signal, async () => {
      isAsked = true;
    });
    const third = semaphore.run(stay, () => Promise.resolve("third"));
    leaving.abort();
    await expect(first).rejects.toThrow("failed");
    await expect(second).rejects.toThrow();
    expect(await third).toBe("third");
    expect(isAsked).toBe(false);
    await expect(semaphore.run(leaving.signal, () => Promise.resolve())).rejects.toThrow();
  });
});
