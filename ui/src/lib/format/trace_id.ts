/** Trace ids as people paste them. */

const PREFIX_MIN = 6;
/** From this length on, digits are not needed to tell an id from a word. */
const SURE_MIN = 16;
const ID = 32;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A trace id or a prefix of it, or null. Accepts a `traceparent`, dashes, quotes, any case. */
export function traceIdIn(text: string): string | null {
  const trimmed = text
    .trim()
    .toLowerCase()
    .replace(/^["'](.*)["']$/, "$1")
    .replace(/^(?:trace|trace_id|trace\.id)[:=]\s*/, "")
    .replace(/^0x/, "");
  const parent = TRACEPARENT.exec(trimmed);
  if (parent) return parent[1]!;
  const digits = trimmed.replaceAll("-", "");
  if (!/^[0-9a-f]+$/.test(digits)) return null;
  if (digits.length < PREFIX_MIN || digits.length > ID) return null;
  return digits.length >= SURE_MIN || /\d/.test(digits) ? digits : null;
}

/** Whether it is a whole id. */
export function isWholeId(id: string): boolean {
  return id.length === ID;
}
