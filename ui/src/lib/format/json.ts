/** JSON as text, and back. */

/** JSON with `bigint` as a number with all digits. */
export function jsonText(value: unknown, indent = 0, depth = 0): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && !Number.isFinite(value)) return `"${value}"`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((each) => jsonText(each, indent, depth + 1))
    : Object.entries(value).map(
        ([name, each]) =>
          `${JSON.stringify(name)}:${indent ? " " : ""}${jsonText(each, indent, depth + 1)}`,
      );
  const [open, close] = isList ? "[]" : "{}";
  if (!parts.length) return `${open}${close}`;
  if (!indent) return `${open}${parts.join(",")}${close}`;
  const pad = " ".repeat(indent * (depth + 1));
  return `${open}\n${pad}${parts.join(`,\n${pad}`)}\n${" ".repeat(indent * depth)}${close}`;
}

/** Parsed JSON object or list in a text; otherwise undefined. Long integers become `bigint`. */
export function parsedJson(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    if (!LONG.test(text)) return JSON.parse(text) as unknown;
    return JSON.parse(text.replace(TOKENS, marked), unmarked) as unknown;
  } catch {
    return undefined;
  }
}

const LONG = /\d{16}/;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Name of the only field of an object that stands for a long integer. */
const MARK = "\0integer";

function marked(token: string): string {
  return /^-?\d{16,}$/.test(token) ? JSON.stringify({ [MARK]: token }) : token;
}

function unmarked(_name: string, value: unknown): unknown {
  if (value === null || typeof value !== "object" || !(MARK in value)) return value;
  const integer = BigInt(value[MARK] as string);
  const number = Number(integer);
  return Number.isSafeInteger(number) ? number : integer;
}
