/** Live tail of log records in a bounded buffer. */

import { messageOf, queryString } from "../../../lib/api/client";
import { streamEvents } from "../../../lib/api/event_stream";
import type { ServerEvent } from "../../../lib/api/event_parser";
import type { LogsFilter } from "../request";
import { type LogRecord, parseRecord } from "./records";

/** Records kept; the oldest are dropped first. As many may wait while paused. */
export const ROWS_MAX = 5000;

export class Tail {
  /** Newest last. */
  rows = $state.raw<readonly LogRecord[]>([]);
  /** Number of rows dropped from the front, so that each keeps its number. */
  first = $state(0);
  /** While paused, new rows wait and the list does not change. */
  isFollowing = $state(true);
  waitingCount = $state(0);
  /** Rows skipped because they arrived too fast. */
  skippedCount = $state(0);
  /** Why the connection is down. */
  trouble = $state<string | null>("Connecting …");
  error = $state<string | null>(null);
  private waiting: LogRecord[] = [];

  /** Receive records until the signal aborts. */
  async run({ q, is, not }: LogsFilter, signal: AbortSignal): Promise<void> {
    const params = { table: "logs", query: q, filter: is, exclude: not };
    try {
      await streamEvents(
        `api/v1/tail${queryString(params)}`,
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
