/** Current status of the node and samples of the last minutes, shared by all screens. */

import type { HealthAnswer, Status } from "../api/types.gen";
import { get, isAborted, messageOf } from "../api/client";
import { poll } from "../api/poll";
import { appendSample, type Sample, sampleOf } from "./samples";

const EVERY_MS = 2000;

class NodeStatus {
  status = $state.raw<Status | undefined>();
  health = $state.raw<HealthAnswer | undefined>();
  error = $state<string | null>(null);
  /** Oldest first. Kept across screens. */
  samples = $state.raw<readonly Sample[]>([]);

  /** Poll the status. Returns a function that stops it: `$effect(() => node.watch())`. */
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
