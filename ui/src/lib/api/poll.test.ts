import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { poll } from "./poll";

class Page extends EventTarget {
  hidden = false;
}

let page: Page;
let asked: number;
const ask = async () => void (asked += 1);

beforeEach(() => {
  vi.useFakeTimers();
  page = new Page();
  asked = 0;
  vi.stubGlobal("document", page);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("polls at once, then at the interval, until stopped", async () => {
  const end = poll(1000, ask);
  await vi.advanceTimersByTimeAsync(3500);
  expect(asked).toBe(4);
  end();
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked).toBe(4);
});

test("polling pauses while hidden and resumes when visible", async () => {
  const end = poll(1000, ask);
  await vi.advanceTimersByTimeAsync(10);
  page.hidden = true;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(1);
  page.hidden = false;
  page.dispatchEvent(new Event("visibilitychange"));
  await vi.advanceTimersByTimeAsync(1500);
  expect(asked).toBe(3);
  end();
});

test("a slow request is awaited, and aborted at the end", async () => {
  let isGivenUp = false;
  const end = poll(1000, (signal) => {
    asked += 1;
    signal.addEventListener("abort", () => (isGivenUp = true));
    return new Promise(() => {});
  });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toBe(1);
  end();
  expect(isGivenUp).toBe(true);
});
