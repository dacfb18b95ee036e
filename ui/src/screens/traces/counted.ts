/** The values of facets among the spans that fit. */

import type { FacetsAnswer } from "../../house/answers";
import { type Asked, get } from "../../house/api";
import type { FacetValues } from "../../parts/facets";
import { askedFor } from "./asking";

/**
 * A facet that somebody has chosen from is counted without that choice, so that its other values
 * are there to be chosen too.
 */
export async function countedFacets(
  asked: Asked,
  names: readonly string[],
  signal: AbortSignal,
): Promise<FacetValues[]> {
  const answers = await Promise.all(
    askedFor(asked, names).map((each) => get<FacetsAnswer>("api/v1/traces/facets", each, signal)),
  );
  const found = new Map<string, FacetValues>();
  for (const { facets, total } of answers) {
    for (const facet of facets) found.set(facet.name, { ...facet, total });
  }
  return names.flatMap((name) => found.get(name) ?? []);
}
