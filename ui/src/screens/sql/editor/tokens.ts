/** Tokenizer of SQL: enough to find tables and to skip strings and comments. */

export interface Token {
  readonly kind: "word" | "quoted" | "text" | "number" | "sign";
  /** Identifier: without quotes, lower case unless quoted. */
  readonly name: string;
  readonly begin: number;
  readonly end: number;
}

const WORD =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|([\p{L}_][\p{L}\p{N}_$]*)|("(?:[^"]|"")*(?:"|$))|('(?:[^']|'')*(?:'|$))|(\d[\d.]*)|(\S)/gu;

/** All tokens except comments. */
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

/** A use of a table, with its AS OF clause if there is one. */
export interface TableUse {
  readonly table: string;
  readonly end: number;
  /** End of the clause; equal to `end` without one. */
  readonly clauseEnd: number;
}

const BEFORE_TABLES: ReadonlySet<string> = new Set(["from", "join"]);
/** Keywords after which a comma does not separate tables. */
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

/** All uses of tables, in order. */
export function tableUses(sql: string): TableUse[] {
  const tokens = tokenize(sql);
  const found: TableUse[] = [];
  /** For each open parenthesis: whether tables are listed here. */
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

/** Read a table; returns the index of its last token. */
function readTable(tokens: readonly Token[], first: number, found: TableUse[]): number {
  let at = first;
  if (tokens[at]?.name === "lateral") at += 1;
  const isName = (word: Token | undefined) => word?.kind === "word" || word?.kind === "quoted";
  if (!isName(tokens[at])) return first - 1;
  while (tokens[at + 1]?.name === "." && isName(tokens[at + 2])) at += 2;
  if (tokens[at + 1]?.name === "(") return at; // a function
  const table = tokens[at]!;
  // The node accepts one clause; a second one is replaced as well.
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
