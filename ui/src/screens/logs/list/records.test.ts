import fc from "fast-check";
import { expect, test } from "vitest";

import { jsonOf, type LogRecord, parseRecord } from "./records";

const NANO = "1794839317894571223";

test("nanoseconds survive parsing and formatting", () => {
  const row = parseRecord<LogRecord>(
    `{"time_unix_nano":${NANO},"observed_time_unix_nano":-1,"body":"x"}`,
  );
  expect(row.time_unix_nano).toBe(NANO);
  expect(row.observed_time_unix_nano).toBe("-1");
  expect(jsonOf(row)).toContain(`"time_unix_nano": ${NANO},`);
});

test("strings that look like timestamps are kept", () => {
  const texts = fc.oneof(
    fc.string(),
    fc.constantFrom(
      '"time_unix_nano":1',
      "\\",
      '{"observed_time_unix_nano":2}',
      '\\"',
      '"time_unix_nano": "3"',
    ),
  );
  const values = fc.record({
    body: fc.array(texts).map((parts) => parts.join("")),
    attributes: fc.dictionary(texts, texts),
  });
  fc.assert(
    fc.property(values, (row) => {
      const text = JSON.stringify(row);
      expect(parseRecord(text)).toEqual(JSON.parse(text));
      expect(JSON.parse(jsonOf(row as unknown as LogRecord))).toEqual(JSON.parse(text));
    }),
  );
});
