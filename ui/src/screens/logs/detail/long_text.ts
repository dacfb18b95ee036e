/** Long texts: JSON with its lines, and what is folded of the rest. */

/** JSON in lines, every number and text as it was written; null when it is none. */
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
  // Texts are left alone; space between the signs is ours.
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
  /** Lines, or if it is only one, characters, that are not shown. */
  readonly hidden: string | null;
}

export const LINES_VISIBLE = 5;
export const CHARACTERS_VISIBLE = 4000;

/** The beginning of a long text, and how much is left. */
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
