/** What somebody is about to write into the search box, and how it is written. */

export interface PartialTerm {
  readonly kind: "field" | "value";
  /** The field whose value is written. */
  readonly field: string;
  /** What is there of it already, without quotes. */
  readonly typed: string;
  /** What is replaced by the choice. */
  readonly begin: number;
  readonly end: number;
}

/** Signs that end a word, unless it is in quotes. */
const ENDS = /[\s()]/;
const COMPARES = /^(?:>=|<=|>|<)/;

/** The word at the caret. */
export function partialTermAt(text: string, caret: number): PartialTerm {
  const begin = wordBegin(text, caret);
  let end = caret;
  while (end < text.length && !ENDS.test(text[end]!)) end += 1;
  let from = begin;
  if (text[from] === "-" && from < caret) from += 1;
  const colon = colonOf(text, from, caret);
  if (colon < 0) {
    const typed = bare(text.slice(from, caret));
    // With the rest of the name, and the colon that is there already.
    const rest = colonOf(text, caret, end);
    return { kind: "field", field: "", typed, begin: from, end: rest < 0 ? end : rest + 1 };
  }
  const compared = COMPARES.exec(text.slice(colon + 1, caret))?.[0].length ?? 0;
  const valueBegin = colon + 1 + compared;
  return {
    kind: "value",
    field: bare(text.slice(from, colon)),
    typed: bare(text.slice(valueBegin, caret)),
    begin: valueBegin,
    end,
  };
}

/** With the choice in place of what was partial, and where the caret is then. */
export function complete(text: string, partial: PartialTerm, choice: string) {
  const written = partial.kind === "field" ? `${nameWord(choice)}:` : `${valueWord(choice)} `;
  const rest = text.slice(partial.end);
  const joined = partial.kind === "value" ? rest.replace(/^ /, "") : rest;
  return {
    text: text.slice(0, partial.begin) + written + joined,
    caret: partial.begin + written.length,
  };
}

/** A value as the box takes it for just that: in quotes if anything in it means something. */
export function valueWord(text: string): string {
  return /^[\p{L}\p{N}_./@][\p{L}\p{N}_.\-/@]*$/u.test(text) && !OPERATORS.test(text)
    ? text
    : quoted(text);
}

/** The same for a name, which begins with a letter. */
export function nameWord(text: string): string {
  return /^[\p{L}_@][\p{L}\p{N}_.\-/@]*$/u.test(text) ? text : quoted(text);
}

/** Operators, and ranges. */
const OPERATORS = /^(?:AND|OR|NOT)$|\.\./;

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

function wordBegin(text: string, caret: number): number {
  let begin = 0;
  let isQuoted = false;
  for (let i = 0; i < caret; i++) {
    const sign = text[i]!;
    if (isQuoted && sign === "\\") i += 1;
    else if (sign === '"') isQuoted = !isQuoted;
    else if (!isQuoted && ENDS.test(sign)) begin = i + 1;
  }
  return Math.min(begin, caret);
}

function colonOf(text: string, from: number, to: number): number {
  let isQuoted = false;
  for (let i = from; i < to; i++) {
    const sign = text[i]!;
    if (isQuoted && sign === "\\") i += 1;
    else if (sign === '"') isQuoted = !isQuoted;
    else if (!isQuoted && sign === ":") return i;
  }
  return -1;
}

/** Without quotes; the last one need not be there yet. */
function bare(text: string): string {
  if (!text.startsWith('"')) return text;
  return /^"((?:\\[^]|[^"\\])*)/.exec(text)![1]!.replace(/\\([^])/g, "$1");
}
