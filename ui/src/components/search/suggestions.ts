/** What the search box offers: names that records have, and values that they occur with. */

import { get } from "../../lib/api/client";
import { asked, type Stretch } from "../../lib/time/range";
import type { Begun } from "./completion";

export interface Offer {
  readonly text: string;
  readonly hint: string;
  readonly count: number | null;
}

const OFFERS = 12;
/** Of so many frequent values those are offered that begin with what was typed. */
const VALUES = 200;

export async function offers(
  table: "logs" | "spans",
  begun: Begun,
  stretch: Stretch,
  signal: AbortSignal,
): Promise<Offer[]> {
  return begun.kind === "field"
    ? fieldsLike(table, begun.typed, stretch, signal)
    : valuesLike(table, begun, stretch, signal);
}

interface FieldsAnswer {
  fields: { name: string; kind: string; count: number }[];
}

async function fieldsLike(
  table: string,
  prefix: string,
  stretch: Stretch,
  signal: AbortSignal,
): Promise<Offer[]> {
  const { fields } = await get<FieldsAnswer>(
    "api/v1/fields",
    { table, prefix, limit: OFFERS, ...asked(stretch) },
    signal,
  );
  return fields.map(({ name, kind, count }) => ({ text: name, hint: kind, count }));
}

async function valuesLike(
  table: "logs" | "spans",
  { field, typed }: Begun,
  stretch: Stretch,
  signal: AbortSignal,
): Promise<Offer[]> {
  const values = await valuesOf(table, field, stretch, signal);
  const wanted = typed.toLowerCase();
  const fitting = values.filter(([text]) => text?.toLowerCase().includes(wanted));
  // Those that begin so come first; otherwise the most frequent do.
  const begins = (text: string | null) => text?.toLowerCase().startsWith(wanted);
  return [...fitting.filter(([text]) => begins(text)), ...fitting.filter(([text]) => !begins(text))]
    .slice(0, OFFERS)
    .flatMap(([text, count]) => (text ? [{ text, hint: "", count }] : []));
}

async function valuesOf(
  table: "logs" | "spans",
  field: string,
  stretch: Stretch,
  signal: AbortSignal,
): Promise<[string | null, number][]> {
  const { facets } = await get<{ facets: { values: [string | null, number][] }[] }>(
    `api/v1/${table === "logs" ? "logs" : "traces"}/facets`,
    { name: field, limit: VALUES, ...asked(stretch) },
    signal,
  );
  return facets[0]?.values ?? [];
}
