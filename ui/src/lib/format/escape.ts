/**
 * Makes invisible characters of received text visible, so that what is read is what was sent and
 * bidi controls cannot reorder the text around it.
 */

const CONTROL_PICTURES = 0x2400;
/** Symbols that every font has. */
const SYMBOLS: Readonly<Record<string, string>> = { "\n": "↵", "\t": "⇥", "\x7f": "␡" };

/**
 * Control characters (C0, C1), format characters such as bidi overrides and zero-width ones, line
 * separators, fillers that look like a space, blank braille, tags, and lone surrogates.
 */
const INVISIBLE =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u{e0100}-\u{e01ef}]/gu;
const INVISIBLE_IN_LINES =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u{e0100}-\u{e01ef}]/gu;

/** Joins emoji, as in families and flags. */
const JOINER = "\u200d";
const BEFORE_JOINER = /[\p{Extended_Pictographic}\u{1f3fb}-\u{1f3ff}\ufe0f]$/u;
const AFTER_JOINER = /^\p{Extended_Pictographic}/u;

/** Escape a text for one line; line breaks are escaped too. */
export function escapeText(text: string): string {
  return text.replace(INVISIBLE, replacement);
}

/** Escape a text, keeping its line breaks and tabs. */
export function escapeLines(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(INVISIBLE_IN_LINES, replacement);
}

function replacement(character: string, at: number, text: string): string {
  if (character === JOINER && isInEmoji(text, at)) return character;
  const symbol = SYMBOLS[character];
  if (symbol) return symbol;
  const code = character.codePointAt(0)!;
  if (code < 0x20) return String.fromCharCode(CONTROL_PICTURES + code);
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

function isInEmoji(text: string, at: number): boolean {
  return (
    BEFORE_JOINER.test(text.slice(Math.max(0, at - 2), at)) &&
    AFTER_JOINER.test(text.slice(at + 1, at + 3))
  );
}

/** Remove ANSI escape sequences. Broken ones are left for `escapeText`. */
export function stripAnsi(text: string): string {
  return text.includes("\x1b") || text.includes("\x9b") ? text.replace(ANSI, "") : text;
}

const ANSI = new RegExp(
  [
    "(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]", // colours, cursor movement
    "\\x1b\\][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)", // titles, links
    "\\x1b[PX^_][^\\x1b]*\\x1b\\\\", // device control strings
    "\\x1b[()*+#%][0-9A-Za-z]", // character sets
    "\\x1b[=>78cDEHMNOZ]",
  ].join("|"),
  "g",
);

/** Truncate a text with `…`, never inside a surrogate pair. */
export function truncate(text: string, length: number): string {
  if (text.length <= length) return text;
  const isHalf = (text.codePointAt(length - 1) ?? 0) > 0xffff;
  return `${text.slice(0, isHalf ? length - 1 : length)}…`;
}
