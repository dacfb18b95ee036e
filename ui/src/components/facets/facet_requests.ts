/** What the node is asked, to know how often values occur. */

import type { FacetsAnswer } from "../../lib/api/types.gen";
import type { Asked } from "../../lib/api/client";
import {
  type Chosen,
  type FacetValues,
  isChosen,
  partsOf,
  shownValues,
  withoutName,
} from "./selection";

export type Table = "logs" | "spans";
export type Counted = ReadonlyMap<string, FacetValues>;

/** So many values are listed at first, and after each wish for more; the node gives no others. */
export const LIMITS = [8, 100, 1000] as const;
export type Limit = (typeof LIMITS)[number];

export const PATHS: Record<Table, string> = {
  logs: "api/v1/logs/facets",
  spans: "api/v1/traces/facets",
};

/**
 * One question for all names that are asked alike. A name that something is wanted of is asked for
 * without that: its other values are what else could be wanted.
 */
export function questionsOf(
  asked: Asked,
  chosen: Chosen,
  names: readonly string[],
  limitOf: (name: string) => Limit,
): Asked[] {
  const question = ({ q, is, not }: Chosen, name: readonly string[], limit: Limit): Asked => ({
    ...asked,
    query: q,
    filter: is,
    exclude: not,
    name,
    limit,
  });
  const wanted = new Set(chosen.is.map((pair) => partsOf(pair).name));
  const isAlone = (name: string) => wanted.has(name) || isChosen(chosen, name, null, "is");
  const together = names.filter((name) => !isAlone(name));
  return [
    ...LIMITS.map((limit) => ({ limit, of: together.filter((name) => limitOf(name) === limit) }))
      .filter(({ of }) => of.length)
      .map(({ limit, of }) => question(chosen, of, limit)),
    ...names
      .filter(isAlone)
      .map((name) => question(withoutName(chosen, name), [name], limitOf(name))),
  ];
}

/** By name, with what is chosen now in its place among what was shown before. */
export function valuesOf(
  answers: readonly FacetsAnswer[],
  chosen: Chosen,
  before: Counted = new Map(),
): Counted {
  const found = answers.flatMap(({ facets, total }) =>
    facets.map((facet): FacetValues => ({ ...facet, total })),
  );
  return new Map(
    found.map((facet) => [
      facet.name,
      { ...facet, values: shownValues(facet, chosen, before.get(facet.name)) },
    ]),
  );
}
