/** The side of a screen. The address has it; on a phone it is only there when somebody opens it. */

import { MediaQuery } from "svelte/reactivity";

interface At {
  readonly now: { readonly side: boolean };
  set(change: { side: boolean }): void;
}

export class Side {
  private readonly narrow = new MediaQuery("max-width: 720px");
  private isOpened = $state(false);

  constructor(private readonly at: At) {}

  get isOpen(): boolean {
    return this.narrow.current ? this.isOpened : this.at.now.side;
  }

  toggle = (): void => {
    if (this.narrow.current) this.isOpened = !this.isOpened;
    else this.at.set({ side: !this.at.now.side });
  };
}
