import { expect, test, vi } from "vitest";

import type { SpanDetail, SubtreeLine } from "./detail";
import { parseExact, nanosAfter } from "../model/nanoseconds";
import { jsonOf, subtreeMarkdown } from "./span_text";

vi.mock("../../../lib/state/prefs.svelte", () => ({ prefs: { isUtc: true } }));

const span: SpanDetail = {
  time: "2026-01-02T03:04:05.000006Z",
  service_name: "shop",
  name: "buy *all* `of` it",
  status_code: "ERROR",
  status_message: "no\nmoney",
  scope_name: null,
  scope_version: null,
  trace_state: null,
  attributes: { "order.id": "7`8", long: "x".repeat(1000) },
  resource_attributes: {},
  scope_attributes: {},
  events: [{ name: "retry", attributes: {} }],
  links: [],
  dropped_attributes_count: 0,
  dropped_events_count: 0,
  dropped_links_count: 0,
};
const line: SubtreeLine = { span, depth: 1, offset_nano: 5, duration_nano: 2e6, self_nano: 1e6 };

test("nanoseconds keep all digits, and strings are unchanged", () => {
  const said = '{"time_unix_nano":1794839293178517624,"body":"\\"time_unix_nano\\":12"}';
  expect(parseExact(said)).toEqual({
    time_unix_nano: "1794839293178517624",
    body: '"time_unix_nano":12',
  });
});

test("timestamps differ by nanoseconds", () => {
  const begin = "2026-01-02T03:04:05.999999999Z";
  expect(nanosAfter("2026-01-02T03:04:06.000000001Z", begin)).toBe(2);
  expect(nanosAfter("2026-01-02T03:04:06Z", begin)).toBe(1);
  expect(nanosAfter("2026-01-02T03:04:05.5Z", begin)).toBe(-499_999_999);
});

test("received text is escaped in Markdown", () => {
  const told = subtreeMarkdown("ab", [line]);
  expect(told).toContain(
    "  - **shop** buy \\*all\\* \\`of\\` it (+5 ns, 2 ms, self 1 ms) **failed**: no money",
  );
  expect(told).toContain("`order.id`: `` 7`8 ``");
  expect(told).toContain("event `retry`");
  expect(Math.max(...told.split("\n").map((each) => each.length))).toBeLessThan(400);
});

test("JSON has no empty and no internal fields", () => {
  const told = JSON.parse(jsonOf({ ...span, _offset: 3, _row: 1 })) as Record<string, unknown>;
  expect(told).not.toHaveProperty("_offset");
  expect(told).not.toHaveProperty("links");
  expect(told["attributes"]).toEqual(span.attributes);
});
