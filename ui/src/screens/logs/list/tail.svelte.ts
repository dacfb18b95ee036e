/** Records as they come, in a buffer that does not grow for ever. */

import { messageOf, queryString } from "../../../lib/api/client";
import { streamEvents } from "../../../lib/api/event_stream";
import type { ServerEvent } from "../../../lib/api/event_parser";
import type { LogsFilter } from "../request";
import { type LogRecord, parseRecord } from "./records";

/** So many stay; the oldest go first. As many may wait while somebody reads. */
export const ROWS_MAX = 5000;

export class Tail {
  /** The newest last. */
  rows = $state.raw<readonly LogRecord[]>([]);
  /** How many rows went before the first, so that each keeps its number. */
  first = $state(0);
  /** While it does not follow, what comes waits, and the list stays as it is. */
  isFollowing = $state(true);
  waitingCount = $state(0);
  /** Rows that came too fast to be shown. */
  skippedCount = $state(0);
  /** Why nothing is heard now. */
  trouble = $state<string | null>("Connecting …");
  error = $state<string | null>(null);
  private waiting: LogRecord[] = [];

  /** Hear of new ones until the signal ends it. */
  async run({ q, is, not }: LogsFilter, signal: AbortSignal): Promise<void> {
    const asked = { table: "logs", query: q, filter: is, exclude: not };
    try {
      await streamEvents(
        `api/v1/tail${queryString(asked)}`,
        signal,
        (events) => this.take(events),
        (trouble) => (this.trouble = trouble),
      );
    } catch (error) {
      this.error = messageOf(error);
    }
  }

  take(events: readonly ServerEvent[]): void {
    const rows: LogRecord[] = [];
    for (const { name, data } of events) {
      if (name === "") rows.push(parseRecord<LogRecord>(data));
      else if (name === "skipped") {
        this.skippedCount += (JSON.parse(data) as { count: number }).count;
      }
    }
    if (!rows.length) return;
    this.waiting = [...this.waiting, ...rows].slice(-ROWS_MAX);
    if (this.isFollowing) this.show();
    else this.waitingCount += rows.length;
  }

  stop(): void {
    this.isFollowing = false;
  }

  follow(): void {
    this.isFollowing = true;
    this.show();
  }

  clear(): void {
    this.first += this.rows.length;
    this.rows = [];
    this.skippedCount = 0;
  }

  private show(): void {
    const rows = [...this.rows, ...this.waiting];
    const gone = Math.max(0, rows.length - ROWS_MAX);
    this.rows = gone ? rows.slice(gone) : rows;
    this.first += gone;
    this.waiting = [];
    this.waitingCount = 0;
  }
}
