/** Spans as text, for messages, issues and language models. */

import { duration } from "../../../lib/format/format";
import type { SubtreeLine } from "./detail";
import { kindOf, nameOf, serviceOf, type Spans } from "../model/spans";

/** checkout: POST /orders, 1.2 s (self 3 ms), failed, trace …, span … */
export function oneLine(spans: Spans, index: number, message: string | null): string {
  const parts = [
    `${serviceOf(spans, index)}: ${nameOf(spans, index)}`,
    kindOf(spans, index).toLowerCase(),
    `${duration(spans.length[index])} (self ${duration(spans.self[index])})`,
    `at +${duration(spans.offset[index])} of ${duration(spans.total)}`,
  ];
  if (spans.isFailed[index]) parts.push(message ? `failed: ${message}` : "failed");
  parts.push(`trace ${spans.traceId}`, `span ${spans.ids[index]}`);
  return parts.join(", ").replace(/\s+/g, " ");
}

/** JSON without empty values. */
export function jsonOf(value: unknown): string {
  return JSON.stringify(
    value,
    (key, each: unknown) => (isLeftOut(key, each) ? undefined : each),
    2,
  );
}

/** Internal columns and empty values. */
function isLeftOut(key: string, value: unknown): boolean {
  if (value === null || /^_(log_partition|offset|row|value_types)$/.test(key)) return true;
  return typeof value === "object" && key !== "" && Object.keys(value).length === 0;
}

export function subtreeJson(lines: readonly SubtreeLine[]): string {
  return jsonOf({
    spans: lines.map(({ span, ...rest }) => ({ ...rest, ...span })),
  });
}

const VALUE_MAX = 300;

/** A nested list of spans with times, errors and attributes. */
export function subtreeMarkdown(traceId: string, lines: readonly SubtreeLine[]): string {
  const told = lines.flatMap((line) => {
    const indent = "  ".repeat(line.depth);
    return [`${indent}- ${heading(line)}`, ...details(line).map((text) => `${indent}  - ${text}`)];
  });
  return [`Trace \`${traceId}\`, times since its first span:`, "", ...told, ""].join("\n");
}

function heading({ span, offset_nano, duration_nano, self_nano }: SubtreeLine): string {
  const times = `+${duration(offset_nano)}, ${duration(duration_nano)}, self ${duration(self_nano)}`;
  const failed = span.status_code === "ERROR" ? " **failed**" : "";
  const message = span.status_message ? `: ${escaped(span.status_message)}` : "";
  const name = `**${escaped(String(span["service_name"]))}** ${escaped(String(span["name"]))}`;
  return `${name} (${times})${failed}${message}`;
}

function details({ span }: SubtreeLine): string[] {
  const pairs = (attributes: Readonly<Record<string, string>>) =>
    Object.entries(attributes).map(([key, value]) => `${code(key)}: ${code(value)}`);
  const events = span.events.map(
    ({ name, attributes }) => `event ${code(name)} ${pairs(attributes).join(", ")}`,
  );
  return [...pairs(span.attributes), ...events];
}

/** Escape Markdown. */
function escaped(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[\\`*_{}[\]<>#|~]/g, "\\$&");
}

function code(text: string): string {
  const short = text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text;
  const line = short.replace(/\s+/g, " ");
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`;
}
