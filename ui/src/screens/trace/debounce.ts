/**
 * Debounced changes of the address: browsers limit the rate, and intermediate steps do not belong
 * in the history.
 */

import type { StateOf } from "../../lib/router/codec";
import type { params } from "./params";

type Change = Partial<StateOf<(typeof params)["shape"]>>;

const WAIT_MS = 250;

export class DebouncedUrl {
  private change: Change = {};
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly write: (change: Change) => void) {}

  get isWaiting(): boolean {
    return this.timer !== undefined;
  }

  set(change: Change): void {
    this.change = { ...this.change, ...change };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), WAIT_MS);
  }

  flush(): void {
    if (this.timer === undefined) return;
    const { change } = this;
    this.close();
    this.write(change);
  }

  /** Drop pending changes: the user navigated away. */
  close(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.change = {};
  }
}
