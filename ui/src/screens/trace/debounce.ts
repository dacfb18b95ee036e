/**
 * Changes of the address that wait until a movement is over. Browsers refuse more than a few a
 * second, and nobody wants them in the history.
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

  /** Nothing of it is written: somebody has gone elsewhere. */
  close(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.change = {};
  }
}
