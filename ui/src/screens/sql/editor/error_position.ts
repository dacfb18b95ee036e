/** Position of an error in a query. */

export interface TextRange {
  readonly from: number;
  readonly to: number;
}

const PLACE = /\bat line (\d+), column (\d+)/;

/** The word at the position that a message names; null if there is none. */
export function errorPosition(message: string, sql: string): TextRange | null {
  const match = PLACE.exec(message);
  if (!match) return null;
  const lines = sql.split("\n");
  const line = lines[Number(match[1]) - 1];
  if (line === undefined) return null;
  const before = lines
    .slice(0, Number(match[1]) - 1)
    .reduce((sum, each) => sum + each.length + 1, 0);
  // The node counts code points, JavaScript counts UTF-16 units.
  const column = [...line].slice(0, Number(match[2]) - 1).join("").length;
  const from = Math.min(before + column, sql.length);
  const word = /^[\p{L}\p{N}_$]+|^\S/u.exec(sql.slice(from));
  const to = from + (word ? word[0].length : 0);
  // At the end of the text, mark the last character.
  return to > from ? { from, to } : from > 0 ? { from: from - 1, to: from } : null;
}
