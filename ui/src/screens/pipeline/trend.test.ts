import fc from "fast-check";
import { expect, test } from "vitest";

import { stageOffsets } from "./stage_offsets";
import { pathOf } from "./trend";

test("any values stay inside the drawing", () => {
  const values = fc.array(fc.oneof(fc.constant(null), fc.double({ min: 0, noNaN: true })), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(values, (given) => {
      const path = pathOf(given, 60, 14);
      const numbers = path.split(/[ML ]/).filter((text) => text !== "");
      expect(numbers.length).toBe(
        2 * given.filter((value) => value !== null && Number.isFinite(value)).length,
      );
      numbers.forEach((text, i) => {
        const number = Number(text);
        expect(number).toBeGreaterThanOrEqual(0);
        expect(number).toBeLessThanOrEqual(i % 2 ? 14 : 60);
      });
    }),
  );
});

test("null values are gaps", () => {
  expect(pathOf([1, null, 1, 1], 30, 10).match(/M/g)?.length).toBe(2);
});

test("missing stages are left out", () => {
  const part = {
    partition: 0,
    start_offset: 0,
    durable_watermark: 10,
    hot_watermark: 9,
    hot_lag_offsets: 1,
    lake_watermark: null,
    lake_lag_offsets: null,
    lake_lag_bytes: null,
    log_bytes: 1,
    log_segments: 1,
  };
  expect(stageOffsets({ partitions: [part, part] })).toEqual({
    end: 20,
    lags: [{ stage: "hot", lag: 2 }],
  });
});
