/** Requests for facet counts. */

import type { FacetsAnswer } from "../../lib/api/types.gen";
import type { QueryParams } from "../../lib/api/client";
import {
  type Filters,
  type FacetValues,
  hasFilter,
  splitPair,
  visibleValues,
  withoutFiltersOn,
} from "./selection";

export type FacetTable = "logs" | "spans";
export type FacetCounts = ReadonlyMap<string, FacetValues>;

/** Values per facet: at first, and after each "more". The API accepts no other limits. */
export const LIMITS = [8, 100, 1000] as const;
export type Limit = (typeof LIMITS)[number];

export const PATHS: Record<FacetTable, string> = {
  logs: "api/v1/logs/facets",
  spans: "api/v1/traces/facets",
};

/**
 * Combine names with equal parameters into one request. A name with an include filter is requested
 * without that filter, so that its other values are counted.
 */
export function facetRequests(
  params: QueryParams,
  chosen: Filters,
  names: readonly string[],
  limitOf: (name: string) => Limit,
): QueryParams[] {
  const question = (
    { q, is, not }: Filters,
    name: readonly string[],
    limit: Limit,
  ): QueryParams => ({
    ...params,
    query: q,
    filter: is,
    exclude: not,
    name,
    limit,
  });
  const wanted = new Set(chosen.is.map((pair) => splitPair(pair).name));
  const isAlone = (name: string) => wanted.has(name) || hasFilter(chosen, name, null, "is");
  const together = names.filter((name) => !isAlone(name));
  return [
    ...LIMITS.map((limit) => ({ limit, of: together.filter((name) => limitOf(name) === limit) }))
      .filter(({ of }) => of.length)
      .map(({ limit, of }) => question(chosen, of, limit)),
    ...names
      .filter(isAlone)
      .map((name) => question(withoutFiltersOn(chosen, name), [name], limitOf(name))),
  ];
}

/** Merge responses by name; selected values keep the position they had before. */
export function mergeCounts(
  answers: readonly FacetsAnswer[],
  chosen: Filters,
  before: FacetCounts = new Map(),
): FacetCounts {
  const found = answers.flatMap(({ facets, total }) =>
    facets.map((facet): FacetValues => ({ ...facet, total })),
  );
  return new Map(
    found.map((facet) => [
      facet.name,
      { ...facet, values: visibleValues(facet, chosen, before.get(facet.name)) },
    ]),
  );
}
