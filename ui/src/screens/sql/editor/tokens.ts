/** The tokens of a query: enough to find tables in it, and to leave texts and comments alone. */

export interface Token {
  readonly kind: "word" | "quoted" | "text" | "number" | "sign";
  /** As a name: without quotes, in lower case unless it has quotes. */
  readonly name: string;
  readonly begin: number;
  readonly end: number;
}

const WORD =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|([\p{L}_][\p{L}\p{N}_$]*)|("(?:[^"]|"")*(?:"|$))|('(?:[^']|'')*(?:'|$))|(\d[\d.]*)|(\S)/gu;

/** All of them, without comments. */
export function tokenize(sql: string): Token[] {
  const found: Token[] = [];
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
  const tokens = tokenize(sql);
  const found: TableUse[] = [];
  /** For each open parenthesis: do tables stand here? */
  const areTables = [false];
  for (let at = 0; at < tokens.length; at++) {
    const word = tokens[at]!;
    if (word.name === "(" && word.kind === "sign") areTables.push(false);
    else if (word.name === ")" && word.kind === "sign" && areTables.length > 1) areTables.pop();
    else if (word.kind === "word" && BEFORE_TABLES.has(word.name)) {
      // `extract(day FROM time)` and `a IS DISTINCT FROM b` name no table.
      if (tokens[at - 1]?.name === "distinct" || isExtract(tokens, at)) continue;
      areTables[areTables.length - 1] = true;
      at = readTable(tokens, at + 1, found);
    } else if (word.kind === "word" && AFTER_TABLES.has(word.name)) {
      areTables[areTables.length - 1] = false;
    } else if (word.name === "," && word.kind === "sign" && areTables.at(-1)) {
      at = readTable(tokens, at + 1, found);
    }
  }
  return found;
}

const TAKES_FROM: ReadonlySet<string> = new Set(["extract", "substring", "trim", "overlay"]);

function isExtract(tokens: readonly Token[], from: number): boolean {
  let depth = 0;
  for (let at = from - 1; at >= 0; at--) {
    const { name, kind } = tokens[at]!;
    if (kind !== "sign") continue;
    if (name === ")") depth += 1;
    else if (name === "(") {
      if (depth === 0) return TAKES_FROM.has(tokens[at - 1]?.name ?? "");
      depth -= 1;
    }
  }
  return false;
}

/** The table at a place, if there is one; gives the last place it takes. */
function readTable(tokens: readonly Token[], first: number, found: TableUse[]): number {
  let at = first;
  if (tokens[at]?.name === "lateral") at += 1;
  const isName = (word: Token | undefined) => word?.kind === "word" || word?.kind === "quoted";
  if (!isName(tokens[at])) return first - 1;
  while (tokens[at + 1]?.name === "." && isName(tokens[at + 2])) at += 2;
  if (tokens[at + 1]?.name === "(") return at; // a function
  const table = tokens[at]!;
  // The node reads one clause; a second one is in the way of any other time, too.
  let last = at;
  while (isAsOfClause(tokens, last + 1)) {
    last += tokens[last + 5]?.name === "timestamp" ? 6 : 5;
    last = Math.min(last, tokens.length - 1);
  }
  found.push({ table: table.name, end: table.end, clauseEnd: tokens[last]!.end });
  return last;
}

function isAsOfClause(tokens: readonly Token[], first: number): boolean {
  const names = tokens
    .slice(first, first + 4)
    .map((word) => (word.kind === "word" ? word.name : ""));
  return /^for system_(time|version) as of$/.test(names.join(" "));
}
