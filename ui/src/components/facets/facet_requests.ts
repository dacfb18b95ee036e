/** What the node is asked, to know how often values occur. */

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

/** So many values are listed at first, and after each wish for more; the node gives no others. */
export const LIMITS = [8, 100, 1000] as const;
export type Limit = (typeof LIMITS)[number];

export const PATHS: Record<FacetTable, string> = {
  logs: "api/v1/logs/facets",
  spans: "api/v1/traces/facets",
};

/**
 * One question for all names that are asked alike. A name that something is wanted of is asked for
 * without that: its other values are what else could be wanted.
 */
export function facetRequests(
  asked: QueryParams,
  chosen: Filters,
  names: readonly string[],
  limitOf: (name: string) => Limit,
): QueryParams[] {
  const question = (
    { q, is, not }: Filters,
    name: readonly string[],
    limit: Limit,
  ): QueryParams => ({
    ...asked,
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

/** By name, with what is chosen now in its place among what was shown before. */
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
