/** Current address of the page. The browser's location is the single source of truth. */

import { type Address, parseAddress, type ScreenName, formatAddress } from "./address";
import type { Codec, Shape, StateOf } from "./codec";
import { rangeFields } from "../time/range";

/** Root of the page. The document's base URL is fixed at load; the path below it changes. */
export const ROOT = new URL(".", document.baseURI);

class Router {
  address = $state.raw<Address | null>(here());

  constructor() {
    addEventListener("popstate", () => (this.address = here()));
  }

  /** Navigate. `replace` adds no history entry, for automatic changes. */
  navigate(href: string, how: { replace?: boolean } = {}): void {
    const url = new URL(href, ROOT);
    if (url.href === location.href) return;
    if (how.replace) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
    this.address = here();
  }
}

export const router = new Router();

/** Link to a screen. It keeps the current time range unless the query sets one. */
export function linkTo(screen: ScreenName, query: Query = {}, id = ""): string {
  const all = new URLSearchParams();
  for (const name of Object.keys(rangeFields)) {
    const text = router.address?.query.get(name);
    if (text && !(name in query)) all.set(name, text);
  }
  for (const [name, value] of Object.entries(query)) {
    for (const text of typeof value === "string" ? [value] : value) all.append(name, text);
  }
  return new URL(formatAddress({ screen, id, query: all }), ROOT).pathname + search(all);
}

export type Query = Record<string, string | readonly string[]>;

/**
 * The state of a screen, read from and written to the address.
 *
 *     const url = urlState(params);
 *     url.params.search          // reactive
 *     url.set({ search: "x" })
 */
export function urlState<S extends Shape>(codec: Codec<S>) {
  const params = $derived(codec.read(router.address?.query ?? new URLSearchParams()));
  return {
    get params(): StateOf<S> {
      return params;
    },
    /** Change parameters. Parameters unknown to the codec are kept. */
    set(change: Partial<StateOf<S>>, how: { replace?: boolean } = {}): void {
      if (router.address) router.navigate(hrefWith(codec, change), how);
    },
    /** Address after a change, for links. */
    href: (change: Partial<StateOf<S>>): string => hrefWith(codec, change),
  };
}

function hrefWith<S extends Shape>(codec: Codec<S>, change: Partial<StateOf<S>>): string {
  const { address } = router;
  if (!address) return ROOT.pathname;
  const query = new URLSearchParams(address.query);
  for (const name of Object.keys(codec.shape)) query.delete(name);
  const state = { ...codec.read(address.query), ...change };
  for (const [name, text] of codec.write(state)) query.append(name, text);
  return new URL(formatAddress({ ...address, query }), ROOT).pathname + search(query);
}

function search(query: URLSearchParams): string {
  const text = query.toString();
  return text && `?${text}`;
}

function here(): Address | null {
  const { pathname, search } = location;
  if (!pathname.startsWith(ROOT.pathname)) return null;
  return parseAddress(pathname.slice(ROOT.pathname.length), search);
}
