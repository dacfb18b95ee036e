/** Sidebar state. It is kept in the address; on a phone the sidebar starts closed. */

import { MediaQuery } from "svelte/reactivity";

interface UrlState {
  readonly params: { readonly side: boolean };
  set(change: { side: boolean }): void;
}

export class Sidebar {
  private readonly narrow = new MediaQuery("max-width: 720px");
  private isOpened = $state(false);

  constructor(private readonly url: UrlState) {}

  get isOpen(): boolean {
    return this.narrow.current ? this.isOpened : this.url.params.side;
  }

  toggle = (): void => {
    if (this.narrow.current) this.isOpened = !this.isOpened;
    else this.url.set({ side: !this.url.params.side });
  };
}
