/** The router: where in the page one is now. The browser's address is the only copy that counts. */

import { type Address, parseAddress, type ScreenName, formatAddress } from "./address";
import type { Codec, Shape, StateOf } from "./codec";
import { rangeFields } from "../time/range";

/** The root of the page. The document's base is fixed when it is loaded, the path below may change. */
export const ROOT = new URL(".", document.baseURI);

class Router {
  address = $state.raw<Address | null>(here());

  constructor() {
    addEventListener("popstate", () => (this.address = here()));
  }

  /** Go somewhere. To `replace` leaves no step to come back to: for what changes by itself. */
  navigate(href: string, how: { replace?: boolean } = {}): void {
    const url = new URL(href, ROOT);
    if (url.href === location.href) return;
    if (how.replace) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
    this.address = here();
  }
}

export const router = new Router();

/** What links have in `href`: the time stays the one that is looked at, unless the query says. */
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
 * The state of a screen, read from the address and formatAddress to it.
 *
 *     const url = urlState(fields);
 *     url.params.search          // reactive
 *     url.set({ search: "x" })
 */
export function urlState<S extends Shape>(codec: Codec<S>) {
  const params = $derived(codec.read(router.address?.query ?? new URLSearchParams()));
  return {
    get params(): StateOf<S> {
      return params;
    },
    /** Change some of it. What the codec does not know stays in the address. */
    set(change: Partial<StateOf<S>>, how: { replace?: boolean } = {}): void {
      if (router.address) router.navigate(hrefWith(codec, change), how);
    },
    /** Where that change would lead, for a link. */
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
