/** What the node is asked for what the screen looks for. */

import type { Asked } from "../../house/api";
import { asked, type Stretch } from "../../house/range";
import { nameWord, word } from "../../parts/completion";
import type { LogsState } from "./fields";

export type Looked = Pick<LogsState, "q" | "is" | "not">;

export function askedOf({ q, is, not }: Looked, stretch: Stretch): Asked {
  return { ...asked(stretch), query: q, filter: is, exclude: not };
}

export interface Filter {
  readonly name: string;
  readonly value: string;
}

/** `name=value`, as addresses and the API have it. */
export function filterOf(pair: string): Filter {
  const at = pair.indexOf("=");
  return at < 0
    ? { name: pair, value: "" }
    : { name: pair.slice(0, at), value: pair.slice(at + 1) };
}

/**
 * With that value as a filter, or without it if it was one already. What was left out before, and
 * is wanted now, is not left out any more.
 */
export function toggledFilter(looked: Looked, { name, value }: Filter, way: "is" | "not"): Looked {
  if (name.includes("=")) {
    // A pair ends its name at the first `=`; the box takes any name.
    const term = `${way === "not" ? "-" : ""}${nameWord(name)}:${word(value)}`;
    return { ...looked, q: `${looked.q} ${term}`.trim() };
  }
  const pair = `${name}=${value}`;
  const other = way === "is" ? "not" : "is";
  const without = looked[way].filter((each) => each !== pair);
  const isThere = without.length < looked[way].length;
  return {
    ...looked,
    [way]: isThere ? without : [...without, pair],
    [other]: looked[other].filter((each) => each !== pair),
  };
}

/** Without what was chosen of one name: so its other values are counted too. */
export function withoutName(looked: Looked, name: string): Looked {
  return { ...looked, is: looked.is.filter((pair) => filterOf(pair).name !== name) };
}
