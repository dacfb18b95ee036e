/** How the node does now, and how it did in the last minutes: for every screen that shows it. */

import type { HealthAnswer, Status } from "../api/types.gen";
import { get, isAborted, messageOf } from "../api/client";
import { poll } from "../api/poll";
import { appendSample, type Sample, sampleOf } from "./samples";

const EVERY_MS = 2000;

class NodeStatus {
  status = $state.raw<Status | undefined>();
  health = $state.raw<HealthAnswer | undefined>();
  error = $state<string | null>(null);
  /** Oldest first. Kept while one looks at other screens, too. */
  samples = $state.raw<readonly Sample[]>([]);

  /** Look at it until the end, which is what this gives: `$effect(() => node.watch())`. */
  watch(everyMs = EVERY_MS): () => void {
    return poll(everyMs, (signal) => this.refresh(signal));
  }

  async refresh(signal?: AbortSignal): Promise<void> {
    try {
      const [status, health] = await Promise.all([
        get<Status>("api/v1/status", {}, signal),
        get<HealthAnswer>("api/v1/health", {}, signal),
      ]);
      this.status = status;
      this.health = health;
      this.error = null;
      this.samples = appendSample(this.samples, sampleOf(status, Date.now()));
    } catch (error) {
      if (!isAborted(error) && !signal?.aborted) this.error = messageOf(error);
    }
  }
}

export const node = new NodeStatus();
