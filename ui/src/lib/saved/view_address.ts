/** Saved views as addresses of the page, and back. */

import type { SavedView } from "../api/types.gen";
import type { Address } from "../router/address";
import { linkTo } from "../router/router.svelte";
import { rangeFields, type RangeState } from "../time/range";

const SAVED: ReadonlySet<string> = new Set<SavedView["screen"]>([
  "logs",
  "traces",
  "trace",
  "services",
  "explore",
  "dashboard",
  "volume",
]);
/** State of one visit, such as the open log record. */
const OMITTED: Readonly<Record<string, readonly string[]>> = { logs: ["open", "around"] };

export function canBeSaved(address: Address | null): address is Address {
  return address !== null && SAVED.has(address.screen);
}

/** The state of a screen. The time range is always part of it, also the default one. */
export function viewOf(title: string, address: Address, range: RangeState): SavedView {
  const { screen, id, query } = address;
  const params: Record<string, string[]> = {};
  for (const name of new Set(query.keys())) {
    if (!(name in rangeFields) && !OMITTED[screen]?.includes(name)) {
      params[name] = query.getAll(name);
    }
  }
  if (screen !== "trace") {
    params["from"] = [range.from];
    if (range.to) params["to"] = [range.to];
  }
  return {
    format: 1,
    title: title.trim(),
    screen: screen as SavedView["screen"],
    ...(id && { id }),
    params,
  };
}

const NO_RANGE = Object.fromEntries(Object.keys(rangeFields).map((name) => [name, []]));

/** The address that a view opens; it keeps nothing of the current time range. */
export function addressOfView({ screen, id, params }: SavedView): string {
  return linkTo(screen, { ...NO_RANGE, ...params }, id);
}

/** The address of the view itself, which stays the same when the view is changed. */
export function linkToView(name: string): string {
  return linkTo("view", NO_RANGE, name);
}
