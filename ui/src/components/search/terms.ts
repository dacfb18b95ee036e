/** Add and remove AND-terms of a search text. */

import { nameWord, valueWord } from "./completion";

/** Term for a field with or without a value. With null: field missing or present. */
export function termOf(name: string, value: string | null, way: "is" | "not"): string {
  if (value === null) return `${way === "is" ? "-" : ""}${nameWord(name)}:*`;
  return `${way === "not" ? "-" : ""}${nameWord(name)}:${valueWord(value)}`;
}

/** Whether the term is required, exactly as written. */
export function hasTerm(q: string, term: string): boolean {
  return placeOf(piecesOf(q), term) >= 0;
}

export function withTerm(q: string, term: string): string {
  // OR binds weaker than the implicit AND.
  const before = piecesOf(q).includes("OR") ? `(${q.trim()})` : q.trim();
  return `${before} ${term}`.trim();
}

export function withoutTerm(q: string, term: string): string {
  const pieces = piecesOf(q);
  const at = placeOf(pieces, term);
  if (at < 0) return q;
  const isJoined = pieces[at - 1] === "AND";
  const end = !isJoined && pieces[at + 1] === "AND" ? at + 2 : at + 1;
  return [...pieces.slice(0, isJoined ? at - 1 : at), ...pieces.slice(end)].join(" ");
}

function placeOf(pieces: readonly string[], term: string): number {
  if (pieces.includes("OR")) return -1;
  return pieces.findIndex((piece, i) => piece === term && pieces[i - 1] !== "NOT");
}

/** Split at spaces outside quotes and parentheses. */
function piecesOf(q: string): string[] {
  const pieces: string[] = [];
  let begin = 0;
  let depth = 0;
  let isQuoted = false;
  for (let i = 0; i <= q.length; i++) {
    const sign = q[i] ?? " ";
    if (isQuoted && sign === "\\") i += 1;
    else if (sign === '"') isQuoted = !isQuoted;
    else if (!isQuoted && sign === "(") depth += 1;
    else if (!isQuoted && sign === ")") depth -= 1;
    const isEnd = i >= q.length || (!isQuoted && depth <= 0 && /\s/.test(sign));
    if (!isEnd) continue;
    if (i > begin) pieces.push(q.slice(begin, i));
    begin = i + 1;
  }
  return pieces;
}
