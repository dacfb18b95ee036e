/** The statement that this page has sent. It goes on when another screen is shown. */

import { ApiError, messageOf } from "../../lib/api/client";
import { execute, type Row } from "./statements";

class CopyRun {
  text = $state("");
  isRunning = $state(false);
  rows = $state.raw<readonly Row[] | null>(null);
  error = $state<string | null>(null);
  tookMs = $state(0);

  async run(text: string): Promise<void> {
    if (this.isRunning) return;
    const begin = performance.now();
    Object.assign(this, { text, isRunning: true, rows: null, error: null });
    try {
      this.rows = await execute(text);
    } catch (error) {
      const isCut = error instanceof ApiError && error.kind === "unreachable";
      this.error = isCut
        ? "The connection to the node ended. Look at the history for whether it was loaded."
        : messageOf(error);
    } finally {
      this.isRunning = false;
      this.tookMs = performance.now() - begin;
    }
  }
}

export const copyRun = new CopyRun();
