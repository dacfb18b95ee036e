/** Suggestions of the search box: field names and their values. */

import { get } from "../../lib/api/client";
import { rangeParams, type TimeRange } from "../../lib/time/range";
import type { PartialTerm } from "./completion";

export interface Suggestion {
  readonly text: string;
  readonly hint: string;
  readonly count: number | null;
}

const SUGGESTIONS_MAX = 12;
/** Number of frequent values to search for matches. */
const VALUES_MAX = 200;

export async function fetchSuggestions(
  table: "logs" | "spans",
  partial: PartialTerm,
  range: TimeRange,
  signal: AbortSignal,
): Promise<Suggestion[]> {
  return partial.kind === "field"
    ? fieldsLike(table, partial.typed, range, signal)
    : valuesLike(table, partial, range, signal);
}

interface FieldsAnswer {
  fields: { name: string; kind: string; count: number }[];
}

async function fieldsLike(
  table: string,
  prefix: string,
  range: TimeRange,
  signal: AbortSignal,
): Promise<Suggestion[]> {
  const { fields } = await get<FieldsAnswer>(
    "api/v1/fields",
    { table, prefix, limit: SUGGESTIONS_MAX, ...rangeParams(range) },
    signal,
  );
  return fields.map(({ name, kind, count }) => ({ text: name, hint: kind, count }));
}

async function valuesLike(
  table: "logs" | "spans",
  { field, typed }: PartialTerm,
  range: TimeRange,
  signal: AbortSignal,
): Promise<Suggestion[]> {
  const values = await valuesOf(table, field, range, signal);
  const needle = typed.toLowerCase();
  const fitting = values.filter(([text]) => text?.toLowerCase().includes(needle));
  // Prefix matches first, then by frequency.
  const begins = (text: string | null) => text?.toLowerCase().startsWith(needle);
  return [...fitting.filter(([text]) => begins(text)), ...fitting.filter(([text]) => !begins(text))]
    .slice(0, SUGGESTIONS_MAX)
    .flatMap(([text, count]) => (text ? [{ text, hint: "", count }] : []));
}

async function valuesOf(
  table: "logs" | "spans",
  field: string,
  range: TimeRange,
  signal: AbortSignal,
): Promise<[string | null, number][]> {
  const { facets } = await get<{ facets: { values: [string | null, number][] }[] }>(
    `api/v1/${table === "logs" ? "logs" : "traces"}/facets`,
    { name: field, limit: VALUES_MAX, ...rangeParams(range) },
    signal,
  );
  return facets[0]?.values ?? [];
}
