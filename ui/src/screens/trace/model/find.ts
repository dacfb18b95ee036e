/**
 * Find queries of a trace: `pay order.id=17 service:"my shop"`.
 *
 * Words match any text of a span; `key=value` or `key:value` matches an attribute or column. What
 * the page knows is matched locally at once, the rest by the node.
 */

import { kindOf, nameOf, serviceOf, type Spans } from "./spans";

export interface FindQuery {
  readonly text: string;
  readonly pairs: readonly (readonly [key: string, value: string])[];
}

const TERM = /([^\s=:"]+)(?:=|:(?!\/))(?:"((?:[^"\\]|\\.)*)"?|(\S*))|"((?:[^"\\]|\\.)*)"?|(\S+)/gsu;

export function parseFindQuery(q: string): FindQuery {
  const words: string[] = [];
  const pairs: [string, string][] = [];
  for (const [, key, quoted, bare, phrase, word] of q.matchAll(TERM)) {
    if (key !== undefined) pairs.push([key, quoted === undefined ? (bare ?? "") : plain(quoted)]);
    else words.push(phrase === undefined ? (word ?? "") : plain(phrase));
  }
  return { text: words.join(" ").trim(), pairs: pairs.filter(([, value]) => value !== "") };
}

/** A pair as it is typed, so that it parses to the same pair. */
export function formatTerm(key: string, value: string): string {
  const isBare = /^[^\s"\\]+$/u.test(value);
  return `${key}=${isBare ? value : `"${value.replace(/["\\]/gu, "\\$&")}"`}`;
}

function plain(quoted: string): string {
  return quoted.replace(/\\(.)/gsu, "$1");
}

export function isEmptyQuery({ text, pairs }: FindQuery): boolean {
  return text === "" && pairs.length === 0;
}

/** Column aliases. */
const COLUMNS: Readonly<Record<string, string>> = {
  service: "service_name",
  operation: "name",
  status: "status_code",
};

type Has = (spans: Spans, index: number, value: string) => boolean;

const HERE: Readonly<Record<string, Has>> = {
  service_name: (spans, index, value) => serviceOf(spans, index) === value,
  name: (spans, index, value) => nameOf(spans, index) === value,
  kind: (spans, index, value) => kindOf(spans, index) === value.toUpperCase(),
  span_id: (spans, index, value) => spans.ids[index] === value.toLowerCase(),
};

/** Columns and attributes as the API names them. */
export function filtersOf(query: FindQuery): string[] {
  return query.pairs.map(([key, value]) => {
    const column = COLUMNS[key] ?? key;
    return `${column}=${column === "status_code" || column === "kind" ? value.toUpperCase() : value}`;
  });
}

/** Whether the node must answer it. */
export function needsNode(query: FindQuery): boolean {
  return query.text !== "" || query.pairs.some(([key]) => !((COLUMNS[key] ?? key) in HERE));
}

/** Spans that match, as far as known locally. */
export function localMatches(spans: Spans, query: FindQuery): Uint8Array {
  const found = new Uint8Array(spans.count);
  if (isEmptyQuery(query)) return found;
  const tests = query.pairs.map(([key, value]) => [HERE[COLUMNS[key] ?? key], value] as const);
  if (tests.some(([has]) => !has)) return found;
  const text = query.text.toLowerCase();
  const has = (word: string) => Number(word.toLowerCase().includes(text));
  const services = spans.services.map(has);
  const names = spans.names.map(has);
  for (let i = 0; i < spans.count; i++) {
    const fits = services[spans.service[i]!] || names[spans.name[i]!];
    if (fits && tests.every(([test, value]) => test?.(spans, i, value))) found[i] = 1;
  }
  return found;
}

/** Add the node's matches. */
export function addMatches(spans: Spans, here: Uint8Array, ids: readonly string[]): Uint8Array {
  const found = here.slice();
  for (const id of ids) {
    const index = spans.indexOf.get(id);
    if (index !== undefined) found[index] = 1;
  }
  return found;
}

export function countMatches(marks: Uint8Array): number {
  let count = 0;
  for (const mark of marks) count += mark;
  return count;
}
