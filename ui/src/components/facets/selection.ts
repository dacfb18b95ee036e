/** Facets: the most frequent values of fields, and what somebody has chosen among them. */

import { hasTerm, termOf, withoutTerm, withTerm } from "../search/terms";

export interface FacetValues {
  readonly name: string;
  /**
   * The most frequent first. Null is for those that do not have the field at all; for a count, it
   * is for one that nobody knows.
   */
  readonly values: readonly (readonly [value: string | null, count: number | null])[];
  /** All that these counts are of. */
  readonly total: number;
}

/** Only with a value, or without it. */
export type FilterMode = "is" | "not";

/** What a screen looks for, as its address has it. */
export interface Filters {
  /** The search box. */
  readonly q: string;
  /** `name=value`: has one of the values of each name, and none of `not`. */
  readonly is: readonly string[];
  readonly not: readonly string[];
}

/** `name=value`, as the API takes them; a name has no `=` in it. */
export function pairOf(name: string, value: string): string {
  return `${name}=${value}`;
}

export function splitPair(pair: string): { name: string; value: string } {
  const at = pair.indexOf("=");
  return at < 0
    ? { name: pair, value: "" }
    : { name: pair.slice(0, at), value: pair.slice(at + 1) };
}

/** Null where only the box can say it: a pair has a value, and ends its name at the first `=`. */
function pairFor(name: string, value: string | null): string | null {
  return value === null || name.includes("=") ? null : pairOf(name, value);
}

export function hasFilter(
  chosen: Filters,
  name: string,
  value: string | null,
  way: FilterMode,
): boolean {
  const pair = pairFor(name, value);
  return pair === null ? hasTerm(chosen.q, termOf(name, value, way)) : chosen[way].includes(pair);
}

/**
 * In when it was out, out when it was in. It is never wanted and refused at the same time, and a
 * field is never wanted with a value and without any: nothing would fit.
 */
export function toggleFilter(
  chosen: Filters,
  name: string,
  value: string | null,
  way: FilterMode,
): Filters {
  const other = way === "is" ? "not" : "is";
  const left = without(without(chosen, name, value, other), name, value, way);
  if (hasFilter(chosen, name, value, way)) return left;
  const { q, is, not } = way === "is" ? withoutOpposite(left, name, value) : left;
  const pair = pairFor(name, value);
  if (pair === null) return { q: withTerm(q, termOf(name, value, way)), is, not };
  return way === "is" ? { q, is: [...is, pair], not } : { q, is, not: [...not, pair] };
}

function without(chosen: Filters, name: string, value: string | null, way: FilterMode): Filters {
  const { q, is, not } = chosen;
  const pair = pairFor(name, value);
  if (pair === null) return { q: withoutTerm(q, termOf(name, value, way)), is, not };
  return { q, is, not, [way]: chosen[way].filter((each) => each !== pair) };
}

function withoutOpposite(chosen: Filters, name: string, value: string | null): Filters {
  return value === null ? withoutFiltersOn(chosen, name) : without(chosen, name, null, "is");
}

/** Without what is wanted of one name: so its other values are counted too. */
export function withoutFiltersOn({ q, is, not }: Filters, name: string): Filters {
  return {
    q: withoutTerm(q, termOf(name, null, "is")),
    is: is.filter((pair) => splitPair(pair).name !== name),
    not,
  };
}

/**
 * What is shown of a facet: a value that was chosen is there also when it is not listed, so that
 * it can be given up. It stays where it was before, below the hand that chose it.
 */
export function visibleValues(
  facet: FacetValues,
  chosen: Filters,
  before?: FacetValues,
): FacetValues["values"] {
  const listed = new Set(facet.values.map(([value]) => value));
  const wanted = chosenOf(chosen, facet.name, "is");
  const all = new Set([...wanted, ...chosenOf(chosen, facet.name, "not")]);
  const wantedCount = otherCount(facet) > 0 ? null : 0;
  const places = new Map(before?.values.map(([value], i) => [value, i]));
  const placeOf = (value: string | null) => places.get(value) ?? Number.MAX_SAFE_INTEGER;
  const shown = [...facet.values];
  for (const value of [...all].sort((one, other) => placeOf(one) - placeOf(other))) {
    const count = wanted.includes(value) ? wantedCount : 0;
    if (!listed.has(value)) shown.splice(placeOf(value), 0, [value, count]);
  }
  return shown;
}

function chosenOf(chosen: Filters, name: string, way: FilterMode): (string | null)[] {
  const values = chosen[way].map(splitPair).filter((each) => each.name === name);
  const unset = hasFilter(chosen, name, null, way) ? [null] : [];
  return [...values.map(({ value }) => value), ...unset];
}

/** How many have a value that is not listed. */
export function otherCount({ values, total }: FacetValues): number {
  return Math.max(0, total - values.reduce((sum, [, count]) => sum + (count ?? 0), 0));
}
