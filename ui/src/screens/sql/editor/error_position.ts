/** Where in a query an error is, when its message says so. */

export interface TextRange {
  readonly from: number;
  readonly to: number;
}

const PLACE = /\bat line (\d+), column (\d+)/;

/** The word at the place that a message names; null when it names none, or one that is not there. */
export function errorPosition(message: string, sql: string): TextRange | null {
  const match = PLACE.exec(message);
  if (!match) return null;
  const lines = sql.split("\n");
  const line = lines[Number(match[1]) - 1];
  if (line === undefined) return null;
  const before = lines
    .slice(0, Number(match[1]) - 1)
    .reduce((sum, each) => sum + each.length + 1, 0);
  // The node counts characters, and JavaScript halves of some of them.
  const column = [...line].slice(0, Number(match[2]) - 1).join("").length;
  const from = Math.min(before + column, sql.length);
  const word = /^[\p{L}\p{N}_$]+|^\S/u.exec(sql.slice(from));
  const to = from + (word ? word[0].length : 0);
  // At the end of the text there is nothing to mark but what is before it.
  return to > from ? { from, to } : from > 0 ? { from: from - 1, to: from } : null;
}
