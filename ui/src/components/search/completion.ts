/** Completion of search terms. */

export interface PartialTerm {
  readonly kind: "field" | "value";
  /** Field of the value being typed. */
  readonly field: string;
  /** Text typed so far, without quotes. */
  readonly typed: string;
  /** Range that the completion replaces. */
  readonly begin: number;
  readonly end: number;
}

/** Characters that end a word outside quotes. */
const ENDS = /[\s()]/;
const COMPARES = /^(?:>=|<=|>|<)/;
/** What may follow a name: `:`, `=`, `!=` or a comparison. */
const SEPARATOR = /^(?::|!?=|(?=[<>]))/;

/** The term at the caret. */
export function partialTermAt(text: string, caret: number): PartialTerm {
  const begin = wordBegin(text, caret);
  let end = caret;
  while (end < text.length && !ENDS.test(text[end]!)) end += 1;
  let from = begin;
  if (text[from] === "-" && from < caret) from += 1;
  const nameEnd = nameEndOf(text, from, caret);
  if (nameEnd < 0) {
    const typed = bare(text.slice(from, caret));
    // Include the rest of the name and an existing colon.
    const rest = nameEndOf(text, caret, end);
    const after = rest < 0 ? 0 : SEPARATOR.exec(text.slice(rest))![0].length;
    return { kind: "field", field: "", typed, begin: from, end: rest < 0 ? end : rest + after };
  }
  const colon = nameEnd + SEPARATOR.exec(text.slice(nameEnd, caret))![0].length;
  const compared = COMPARES.exec(text.slice(colon, caret))?.[0].length ?? 0;
  const valueBegin = colon + compared;
  return {
    kind: "value",
    field: bare(text.slice(from, nameEnd)),
    typed: bare(text.slice(valueBegin, caret)),
    begin: valueBegin,
    end,
  };
}

/** Insert a completion; returns the text and the caret after it. */
export function complete(text: string, partial: PartialTerm, choice: string) {
  const written = partial.kind === "field" ? `${nameWord(choice)}:` : `${valueWord(choice)} `;
  const rest = text.slice(partial.end);
  const joined = partial.kind === "value" ? rest.replace(/^ /, "") : rest;
  return {
    text: text.slice(0, partial.begin) + written + joined,
    caret: partial.begin + written.length,
  };
}

/** A value as a search term, quoted if it contains operators. */
export function valueWord(text: string): string {
  return /^[\p{L}\p{N}_./@][\p{L}\p{N}_.\-/@]*$/u.test(text) && !OPERATORS.test(text)
    ? text
    : quoted(text);
}

/** A field name as a search term; names begin with a letter. */
export function nameWord(text: string): string {
  return /^[\p{L}_@][\p{L}\p{N}_.\-/@]*$/u.test(text) ? text : quoted(text);
}

/** Operators and ranges. */
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

function nameEndOf(text: string, from: number, to: number): number {
  let isQuoted = false;
  for (let i = from; i < to; i++) {
    const sign = text[i]!;
    if (isQuoted && sign === "\\") i += 1;
    else if (sign === '"') isQuoted = !isQuoted;
    else if (!isQuoted && SEPARATOR.test(text.slice(i, to))) return i;
  }
  return -1;
}

/** Strip quotes; the closing one may be missing. */
function bare(text: string): string {
  if (!text.startsWith('"')) return text;
  return /^"((?:\\[^]|[^"\\])*)/.exec(text)![1]!.replace(/\\([^])/g, "$1");
}
