import { expect, test } from "vitest";

import { appendSample, increasePerSecond, type Sample, trendOf } from "./samples";

const sample = (seconds: number, value: number | null): Sample => ({
  atMs: seconds * 1000,
  values: { n: value },
});

test("the rate covers the last seconds and restarts after a reset", () => {
  const samples = [sample(0, 0), sample(10, 100), sample(20, 120), sample(30, 20), sample(40, 40)];
  expect(increasePerSecond(samples, "n", 10_000)).toBe(2);
  expect(increasePerSecond(samples, "n", 40_000)).toBe(3.5);
  expect(increasePerSecond(samples.slice(0, 1), "n", 10_000)).toBe(null);
  expect(increasePerSecond([], "n", 10_000)).toBe(null);
  expect(increasePerSecond(samples, "other", 10_000)).toBe(0);
});

test("old samples are dropped", () => {
  let samples: readonly Sample[] = [];
  for (let second = 0; second < 1000; second += 10) {
    samples = appendSample(samples, sample(second, second));
  }
  expect(samples.length).toBe(30);
  expect(trendOf(samples, "n").at(-1)).toBe(990);
  expect(trendOf(samples, "other").every((value) => value === null)).toBe(true);
});
