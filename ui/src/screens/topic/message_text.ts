/** Keys, values and headers of messages as text. */

import type { MessageData, TopicMessage } from "../../lib/api/types.gen";
import { jsonText, parsedJson } from "../../lib/format/json";

const HEX_LINE = 32;

/** Identifies a message within its topic, also in the address. */
export function placeOf({ partition, offset }: { partition: number; offset: number }): string {
  return `${partition}:${offset}`;
}

export function parsePlace(text: string): { partition: number; offset: number } | null {
  const found = /^(\d{1,9}):(\d{1,16})$/.exec(text);
  return found && { partition: Number(found[1]), offset: Number(found[2]) };
}

/** One line for lists. */
export function previewOf(data: MessageData | null): string {
  if (data === null) return "null";
  if (data.text === "") return "empty";
  return `${data.format === "hex" ? "0x" : ""}${data.text}${data.is_cut ? "…" : ""}`;
}

/** Bytes as lines of offset, hexadecimal digits and characters. */
export function hexDump(digits: string): string {
  const lines: string[] = [];
  for (let at = 0; at < digits.length; at += HEX_LINE) {
    const bytes = digits.slice(at, at + HEX_LINE).match(/../g) ?? [];
    const letters = bytes.map((byte) => {
      const code = parseInt(byte, 16);
      return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : ".";
    });
    const shown = bytes.join(" ").padEnd((HEX_LINE / 2) * 3 - 1);
    lines.push(`${(at / 2).toString(16).padStart(6, "0")}  ${shown}  ${letters.join("")}`);
  }
  return lines.join("\n");
}

/** A message as a line that `frazil produce --format json` takes. */
export function jsonOf(topic: string, message: TopicMessage): string {
  const fields: Record<string, unknown> = {
    topic,
    partition: message.partition,
    offset: message.offset,
    time: new Date(message.timestamp_ms).toISOString(),
    ...field("key", message.key),
    ...field("value", message.value),
  };
  if (message.headers.length) {
    fields["headers"] = message.headers.map(({ name, value }) => ({
      name,
      ...field("value", value),
    }));
  }
  return jsonText(fields, 2);
}

function field(name: string, data: MessageData | null): Record<string, unknown> {
  if (data === null) return { [name]: null };
  if (data.format === "hex") return { [`${name}_hex`]: data.text };
  return { [name]: (data.format === "json" ? parsedJson(data.text) : undefined) ?? data.text };
}
