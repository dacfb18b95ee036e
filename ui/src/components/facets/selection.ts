/** Facet values and the filters selected from them. */

import { hasTerm, termOf, withoutTerm, withTerm } from "../search/terms";

export interface FacetValues {
  readonly name: string;
  /**
   * Most frequent first. A null value stands for records without the field; a null count is
   * unknown.
   */
  readonly values: readonly (readonly [value: string | null, count: number | null])[];
  /** Number of records that the counts are of. */
  readonly total: number;
}

/** Include or exclude a value. */
export type FilterMode = "is" | "not";

/** Filters of a screen, as kept in its address. */
export interface Filters {
  /** Search text. */
  readonly q: string;
  /** `name=value`: matches any included value of each name, and no excluded one. */
  readonly is: readonly string[];
  readonly not: readonly string[];
}

/** `name=value`, as the API expects; names contain no `=`. */
export function pairOf(name: string, value: string): string {
  return `${name}=${value}`;
}

export function splitPair(pair: string): { name: string; value: string } {
  const at = pair.indexOf("=");
  return at < 0
    ? { name: pair, value: "" }
    : { name: pair.slice(0, at), value: pair.slice(at + 1) };
}

/** Null if only the search box can express it: no value, or a name with `=`. */
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
 * Add or remove a filter. A value is never included and excluded at once, nor a field required to
 * have a value and to be missing: nothing would match.
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

/** Remove the include filters on a name, so that its other values are counted. */
export function withoutFiltersOn({ q, is, not }: Filters, name: string): Filters {
  return {
    q: withoutTerm(q, termOf(name, null, "is")),
    is: is.filter((pair) => splitPair(pair).name !== name),
    not,
  };
}

/**
 * Values to list. A selected value is listed even if it is not among the most frequent, so that it
 * can be removed; it keeps its previous position.
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

/** Number of records with a value that is not listed. */
export function otherCount({ values, total }: FacetValues): number {
  return Math.max(0, total - values.reduce((sum, [, count]) => sum + (count ?? 0), 0));
}
