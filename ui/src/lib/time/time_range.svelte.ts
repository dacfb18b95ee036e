/**
 * The stretch of time that all parts of a screen look at.
 *
 * "The last hour" is worked out once for all of them, anew when somebody asks for it or while it
 * plays, so that a chart and the list below it are about the same records.
 */

import { stateOf } from "../router/router.svelte";
import { fixed, isRelative, rangeCodec, type RangeState, type Stretch, stretchOf } from "./range";

const PLAY_MS = 5000;

class Now {
  ms = $state(Date.now());
  private readonly at = stateOf(rangeCodec);

  get range(): RangeState {
    return this.at.now;
  }

  get stretch(): Stretch {
    return stretchOf(this.at.now, this.ms);
  }

  /** Look again: whatever is relative ends now. */
  refresh = (): void => {
    this.ms = Date.now();
  };

  /** Look at another stretch. */
  set(range: Partial<RangeState>): void {
    this.refresh();
    this.at.set(range);
  }

  /** Look at exactly that, as after a drag over a chart. */
  narrow = (stretch: Stretch): void => this.set(fixed(stretch));

  /** Let it move on by itself, or keep it. */
  play(play: boolean): void {
    this.refresh();
    this.at.set({ play }, { replace: true });
  }

  /** As long as it plays, it is looked again every few seconds. Called by the shell. */
  keepPlaying(): () => void {
    const timer = setInterval(() => {
      if (this.range.play && isRelative(this.range) && !document.hidden) this.refresh();
    }, PLAY_MS);
    return () => clearInterval(timer);
  }
}

export const now = new Now();
