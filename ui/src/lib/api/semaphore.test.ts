import { describe, expect, it } from "vitest";

import { Turns } from "./semaphore";

describe("turns", () => {
  it("lets only so many ask at once, and all of them in the end", async () => {
    const turns = new Turns(2);
    const { signal } = new AbortController();
    let now = 0;
    let most = 0;
    const asked = Array.from({ length: 9 }, (_, i) =>
      turns.take(signal, async () => {
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

  it("does not ask for those who have left, and goes on after a failure", async () => {
    const turns = new Turns(1);
    const stay = new AbortController().signal;
    const leaving = new AbortController();
    const first = turns.take(stay, () => Promise.reject(new Error("failed")));
    let isAsked = false;
    const second = turns.take(leaving.signal, async () => {
      isAsked = true;
    });
    const third = turns.take(stay, () => Promise.resolve("third"));
    leaving.abort();
    await expect(first).rejects.toThrow("failed");
    await expect(second).rejects.toThrow();
    expect(await third).toBe("third");
    expect(isAsked).toBe(false);
    await expect(turns.take(leaving.signal, () => Promise.resolve())).rejects.toThrow();
  });
});
