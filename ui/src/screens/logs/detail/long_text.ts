/** Pretty-printed JSON and truncation of long texts. */

/** Indent JSON, keeping numbers and strings as written; null if it is not JSON. */
export function prettyJson(text: string): string | null {
  const trimmed = text.trim();
  if (!/^[{[]/.test(trimmed)) return null;
  try {
    JSON.parse(trimmed);
  } catch {
    return null;
  }
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  // Strings are kept; whitespace between tokens is replaced.
  return trimmed.replace(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g, (sign) => {
    if (sign.startsWith('"')) return sign;
    if (sign.length > 1 && /^[{[]/.test(sign)) return sign[0]! + sign.at(-1)!;
    if (/^\s/.test(sign)) return "";
    if (sign === ":") return ": ";
    if (sign === ",") return `,${line()}`;
    if (sign === "{" || sign === "[") {
      depth += 1;
      return sign + line();
    }
    depth -= 1;
    return line() + sign;
  });
}

export interface TruncatedText {
  readonly text: string;
  /** Number of hidden lines, or characters for a single line. */
  readonly hidden: string | null;
}

export const LINES_VISIBLE = 5;
export const CHARACTERS_VISIBLE = 4000;

/** The beginning of a long text and how much is hidden. */
export function truncateText(text: string): TruncatedText {
  let end = -1;
  for (let line = 0; line < LINES_VISIBLE; line++) {
    end = text.indexOf("\n", end + 1);
    if (end < 0) break;
  }
  // Two more lines are not worth a button.
  const rest = end < 0 ? 0 : countLines(text, end + 1);
  if (rest > 2 && end <= CHARACTERS_VISIBLE) {
    return { text: text.slice(0, end), hidden: `${rest} more lines` };
  }
  if (text.length <= CHARACTERS_VISIBLE) return { text, hidden: null };
  const more = text.length - CHARACTERS_VISIBLE;
  return {
    text: text.slice(0, CHARACTERS_VISIBLE),
    hidden: `${more.toLocaleString("en")} more characters`,
  };
}

function countLines(text: string, from: number): number {
  let lines = 1;
  for (let at = text.indexOf("\n", from); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}
