/** Syntax highlighting of a query. */

import { KEYWORDS } from "./completions";

export interface Piece {
  readonly text: string;
  /** Empty for plain text. */
  readonly kind: "" | "keyword" | "text" | "number" | "comment";
  readonly isWrong: boolean;
}

const PIECE =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|([\p{L}_][\p{L}\p{N}_$]*)|('(?:[^']|'')*(?:'|$))|(\d[\d.]*)/gu;
const WORDS: ReadonlySet<string> = new Set(KEYWORDS);

/** Highlighted lines; pieces are split at the ends of the error. */
export function highlightLines(sql: string, wrong: { from: number; to: number } | null): Piece[][] {
  const lines: Piece[][] = [[]];
  let at = 0;
  const add = (text: string, kind: Piece["kind"]) => {
    for (const part of cutAt(text, at, wrong)) {
      part.text.split("\n").forEach((line, i) => {
        if (i > 0) lines.push([]);
        if (line) lines.at(-1)!.push({ text: line, kind, isWrong: part.isWrong });
      });
    }
    at += text.length;
  };
  for (const match of sql.matchAll(PIECE)) {
    add(sql.slice(at, match.index), "");
    const [all, comment, word, text, number] = match;
    if (comment !== undefined) add(all, "comment");
    else if (word !== undefined) add(all, WORDS.has(word.toLowerCase()) ? "keyword" : "");
    else if (text !== undefined) add(all, "text");
    else if (number !== undefined) add(all, "number");
  }
  add(sql.slice(at), "");
  return lines;
}

function cutAt(text: string, at: number, wrong: { from: number; to: number } | null) {
  if (!wrong) return [{ text, isWrong: false }];
  const from = Math.min(Math.max(wrong.from - at, 0), text.length);
  const to = Math.min(Math.max(wrong.to - at, from), text.length);
  return [
    { text: text.slice(0, from), isWrong: false },
    { text: text.slice(from, to), isWrong: true },
    { text: text.slice(to), isWrong: false },
  ];
}
