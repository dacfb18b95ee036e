/**
 * The time range that all parts of a screen share.
 *
 * A relative range such as "the last hour" is resolved once for all of them, again on refresh and
 * while it plays, so that a chart and the list below it show the same records.
 */

import { urlState } from "../router/router.svelte";
import {
  fixedRange,
  isRelative,
  rangeCodec,
  type RangeState,
  resolveRange,
  type TimeRange,
} from "./range";

const PLAY_MS = 5000;

class SharedTimeRange {
  nowMs = $state(Date.now());
  private readonly url = urlState(rangeCodec);

  /** The range as the address has it, possibly relative. */
  get selection(): RangeState {
    return this.url.params;
  }

  /** The selection in absolute times. */
  get current(): TimeRange {
    return resolveRange(this.selection, this.nowMs);
  }

  /** Move the end of a relative range to now. */
  refresh = (): void => {
    this.nowMs = Date.now();
  };

  /** Select another range. */
  set(range: Partial<RangeState>): void {
    this.refresh();
    this.url.set(range);
  }

  /** Select a fixed range, as after a drag over a chart. */
  zoomTo = (range: TimeRange): void => this.set(fixedRange(range));

  /** Start or stop refreshing automatically. */
  setPlaying(play: boolean): void {
    this.refresh();
    this.url.set({ play }, { replace: true });
  }

  /** Refresh every few seconds while the range plays. Called once by the app. */
  startTimer(): () => void {
    const timer = setInterval(() => {
      if (this.selection.play && isRelative(this.selection) && !document.hidden) this.refresh();
    }, PLAY_MS);
    return () => clearInterval(timer);
  }
}

export const timeRange = new SharedTimeRange();
