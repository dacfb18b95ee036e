/** The words of a query: enough to find tables in it, and to leave texts and comments alone. */

export interface Word {
  readonly kind: "word" | "quoted" | "text" | "number" | "sign";
  /** As a name: without quotes, in lower case unless it has quotes. */
  readonly name: string;
  readonly begin: number;
  readonly end: number;
}

const WORD =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|([\p{L}_][\p{L}\p{N}_$]*)|("(?:[^"]|"")*(?:"|$))|('(?:[^']|'')*(?:'|$))|(\d[\d.]*)|(\S)/gu;

/** All of them, without comments. */
export function wordsOf(sql: string): Word[] {
  const found: Word[] = [];
  for (const match of sql.matchAll(WORD)) {
    const [all, comment, word, quoted, text, number] = match;
    if (comment !== undefined) continue;
    const begin = match.index;
    found.push({
      kind: word ? "word" : quoted ? "quoted" : text ? "text" : number ? "number" : "sign",
      name: word
        ? all.toLowerCase()
        : quoted
          ? quoted
              .slice(1, quoted.length > 1 && quoted.endsWith('"') ? -1 : undefined)
              .replaceAll('""', '"')
          : all,
      begin,
      end: begin + all.length,
    });
  }
  return found;
}

/** A table where a query names it, and the clause of another time behind it, if it has one. */
export interface TableUse {
  readonly table: string;
  readonly end: number;
  /** From the end of the name to the end of the clause; equal to `end` when there is none. */
  readonly clauseEnd: number;
}

const BEFORE_TABLES: ReadonlySet<string> = new Set(["from", "join"]);
/** Words after which a comma does not mean another table. */
const AFTER_TABLES: ReadonlySet<string> = new Set([
  "select",
  "where",
  "on",
  "using",
  "group",
  "order",
  "having",
  "limit",
  "window",
  "with",
  "union",
  "values",
]);

/** Every table that a query reads from, in their order. */
export function tableUses(sql: string): TableUse[] {
  const words = wordsOf(sql);
  const found: TableUse[] = [];
  /** For each open parenthesis: do tables stand here? */
  const areTables = [false];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word.name === "(" && word.kind === "sign") areTables.push(false);
    else if (word.name === ")" && word.kind === "sign" && areTables.length > 1) areTables.pop();
    else if (word.kind === "word" && BEFORE_TABLES.has(word.name)) {
      // `extract(day FROM time)` and `a IS DISTINCT FROM b` name no table.
      if (words[at - 1]?.name === "distinct" || isExtract(words, at)) continue;
      areTables[areTables.length - 1] = true;
      at = take(words, at + 1, found);
    } else if (word.kind === "word" && AFTER_TABLES.has(word.name)) {
      areTables[areTables.length - 1] = false;
    } else if (word.name === "," && word.kind === "sign" && areTables.at(-1)) {
      at = take(words, at + 1, found);
    }
  }
  return found;
}

const TAKES_FROM: ReadonlySet<string> = new Set(["extract", "substring", "trim", "overlay"]);

function isExtract(words: readonly Word[], from: number): boolean {
  let depth = 0;
  for (let at = from - 1; at >= 0; at--) {
    const { name, kind } = words[at]!;
    if (kind !== "sign") continue;
    if (name === ")") depth += 1;
    else if (name === "(") {
      if (depth === 0) return TAKES_FROM.has(words[at - 1]?.name ?? "");
      depth -= 1;
    }
  }
  return false;
}

/** The table at a place, if there is one; gives the last place it takes. */
function take(words: readonly Word[], first: number, found: TableUse[]): number {
  let at = first;
  if (words[at]?.name === "lateral") at += 1;
  const isName = (word: Word | undefined) => word?.kind === "word" || word?.kind === "quoted";
  if (!isName(words[at])) return first - 1;
  while (words[at + 1]?.name === "." && isName(words[at + 2])) at += 2;
  if (words[at + 1]?.name === "(") return at; // a function
  const table = words[at]!;
  // The node reads one clause; a second one is in the way of any other time, too.
  let last = at;
  while (isOtherTime(words, last + 1)) {
    last += words[last + 5]?.name === "timestamp" ? 6 : 5;
    last = Math.min(last, words.length - 1);
  }
  found.push({ table: table.name, end: table.end, clauseEnd: words[last]!.end });
  return last;
}

function isOtherTime(words: readonly Word[], first: number): boolean {
  const names = words
    .slice(first, first + 4)
    .map((word) => (word.kind === "word" ? word.name : ""));
  return /^for system_(time|version) as of$/.test(names.join(" "));
}
