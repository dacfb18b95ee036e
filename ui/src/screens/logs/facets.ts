/** How often values occur. */

import { type Asked, get } from "../../house/api";
import type { Stretch } from "../../house/range";
import { askedOf, filterOf, type Looked, withoutName } from "./asking";

export interface Counted {
  readonly name: string;
  /** The most frequent first; null is for those that have none. */
  readonly values: readonly (readonly [string | null, number])[];
  readonly total: number;
}

interface FacetsAnswer {
  facets: { name: string; values: [string | null, number][] }[];
  total: number;
}

/**
 * The values of each name. Where some values of a name are wanted, its others are counted as well:
 * they are what else could be wanted.
 */
export async function countedValues(
  looked: Looked,
  stretch: Stretch,
  names: readonly string[],
  limit: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Counted>> {
  const filtered = new Set(looked.is.map((pair) => filterOf(pair).name));
  const together = names.filter((name) => !filtered.has(name));
  const alone = names.filter((name) => filtered.has(name));
  const ask = (asked: Asked, of: readonly string[]) =>
    get<FacetsAnswer>("api/v1/logs/facets", { ...asked, name: of, limit }, signal);
  const answers = await Promise.all([
    ...(together.length ? [ask(askedOf(looked, stretch), together)] : []),
    ...alone.map((name) => ask(askedOf(withoutName(looked, name), stretch), [name])),
  ]);
  return new Map(
    answers.flatMap(({ facets, total }) =>
      facets.map(({ name, values }) => [name, { name, values, total }] as const),
    ),
  );
}

/** How many have a value that is not listed. */
export function otherCount({ values, total }: Counted): number {
  return Math.max(0, total - values.reduce((sum, [, count]) => sum + count, 0));
}
