/** Facets: the most frequent values of fields, and what somebody has chosen among them. */

export interface FacetValues {
  readonly name: string;
  /** The most frequent first. Null is for those that do not have the field at all. */
  readonly values: readonly (readonly [string | null, number])[];
  /** All that these counts are of, where it is not the same for all facets. */
  readonly total?: number;
}

/** `name=value`, as the API takes them; a name has no `=` in it. */
export function pairOf(name: string, value: string): string {
  return `${name}=${value}`;
}

export function partsOf(pair: string): { name: string; value: string } {
  const at = pair.indexOf("=");
  return at < 0
    ? { name: pair, value: "" }
    : { name: pair.slice(0, at), value: pair.slice(at + 1) };
}

export interface Chosen {
  readonly filter: readonly string[];
  readonly exclude: readonly string[];
}

/** In when it was out, out when it was in; and it is never wanted and refused at the same time. */
export function toggled(chosen: Chosen, way: "filter" | "exclude", pair: string): Chosen {
  const other = way === "filter" ? "exclude" : "filter";
  const without = chosen[way].filter((each) => each !== pair);
  const isNew = without.length === chosen[way].length;
  const left = chosen[other].filter((each) => each !== pair);
  const now = isNew ? [...without, pair] : without;
  return way === "filter" ? { filter: now, exclude: left } : { filter: left, exclude: now };
}

/**
 * What is shown of a facet: a value that was chosen is there also when none is left of it, so that
 * it can be given up.
 */
export function shownValues(facet: FacetValues, chosen: Chosen): FacetValues["values"] {
  const there = new Set(facet.values.map(([value]) => value));
  const missing = [...chosen.filter, ...chosen.exclude]
    .map(partsOf)
    .filter(({ name, value }) => name === facet.name && !there.has(value));
  return [...facet.values, ...missing.map(({ value }) => [value, 0] as const)];
}

/** How many have a value that is not listed; those of a page are the most frequent ones only. */
export function others(facet: FacetValues, total: number): number {
  return Math.max(0, total - facet.values.reduce((sum, [, count]) => sum + count, 0));
}
