import { expect, test } from "vitest";

import type { MessageData, TopicMessage } from "../../lib/api/types.gen";
import { hexDump, jsonOf, parsePlace, placeOf, previewOf } from "./message_text";

function data(text: string, format: MessageData["format"] = "text", is_cut = false): MessageData {
  return { text, format, is_cut, size_bytes: text.length };
}

test("a place survives the address", () => {
  expect(parsePlace(placeOf({ partition: 3, offset: 42 }))).toEqual({ partition: 3, offset: 42 });
  for (const text of ["", "3", "3:", "a:b", "-1:2", "1:2:3"]) expect(parsePlace(text)).toBeNull();
});

test("previews tell null, empty, bytes and cut values apart", () => {
  expect(previewOf(null)).toBe("null");
  expect(previewOf(data(""))).toBe("empty");
  expect(previewOf(data("00ff", "hex"))).toBe("0x00ff");
  expect(previewOf(data("abc", "text", true))).toBe("abc…");
});

test("bytes are shown sixteen per line", () => {
  const lines = hexDump("41".repeat(17) + "00").split("\n");
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(/^000000 {2}(41 ){15}41 {2}A{16}$/);
  expect(lines[1]).toMatch(/^000010 {2}41 00 +A\.$/);
});

test("a message can be produced again, with all digits", () => {
  const message: TopicMessage = {
    partition: 1,
    offset: 2,
    timestamp_ms: 0,
    key: data("00", "hex"),
    value: data('{"id":9007199254740993}', "json"),
    headers: [{ name: "source", value: null }],
    header_count: 1,
  };
  const text = jsonOf("orders", message);
  expect(text).toContain("9007199254740993");
  expect(text).toContain('"key_hex": "00"');
  expect(JSON.parse(text)).toMatchObject({ topic: "orders", time: "1970-01-01T00:00:00.000Z" });
});
