/** Changes of a table as they come: a cursor per partition, a bounded list. */

import { ApiError, get, getExact, isAborted, messageOf } from "../../lib/api/client";
import { Semaphore } from "../../lib/api/semaphore";
import type { KeyedPartitionStatus, TableAnswer } from "../../lib/api/types.gen";
import type { ChangeRow } from "./versions";

/** Changes kept in the list. */
export const KEPT_MAX = 500;
/** Offsets of each partition that are shown at first. */
const FIRST = 50;
const PAGE = 200;
/** Pages of a partition that one step reads; then it goes on to the newest write. */
const PAGES_MAX = 5;
const REQUESTS_MAX = 4;

export interface TableChange {
  /** Unique in the list. */
  readonly id: number;
  readonly partition: number;
  readonly row: ChangeRow;
}

interface ChangesPage {
  readonly changes: readonly ChangeRow[];
  readonly next: number;
}

export class ChangeList {
  /** The newest first. */
  changes = $state.raw<readonly TableChange[]>([]);
  isLoading = $state(true);
  error = $state<string | null>(null);
  /** While paused, new changes wait and the list does not change. */
  isPaused = $state(false);
  waitingCount = $state(0);
  /** Offsets that were not read: too many came at once. */
  skippedCount = $state(0);
  private readonly cursors = new Map<number, number>();
  private readonly requests = new Semaphore(REQUESTS_MAX);
  private waiting: TableChange[] = [];
  private count = 0;

  /** `path` is that of the table; without a partition, all are read. */
  constructor(
    private readonly path: string,
    private readonly partition: number | null,
  ) {}

  /** Read what is new. Failures are noted; the next step continues where this one ended. */
  async step(signal: AbortSignal): Promise<void> {
    try {
      const { status } = await get<TableAnswer>(this.path, {}, signal);
      const parts = (status.partitions ?? []).filter(
        (each) => this.partition === null || each.partition === this.partition,
      );
      const found = await Promise.all(parts.map((each) => this.read(each, signal)));
      this.take(found.flat());
      this.error = null;
      this.isLoading = false;
    } catch (error) {
      if (signal.aborted || isAborted(error)) return;
      this.error = messageOf(error);
      this.isLoading = false;
    }
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.show();
  }

  private async read(status: KeyedPartitionStatus, signal: AbortSignal): Promise<TableChange[]> {
    const { partition, first, indexed: end } = status;
    let cursor = this.cursors.get(partition) ?? Math.max(first, end - FIRST);
    if (cursor > end) cursor = first; // The table was dropped and created again.
    const taken: TableChange[] = [];
    const skipTo = (offset: number) => {
      this.skippedCount += Math.max(0, offset - cursor);
      cursor = Math.max(cursor, offset);
    };
    skipTo(first); // Older ones were compacted meanwhile.
    for (let page = 0; cursor < end && page <= PAGES_MAX; page += 1) {
      if (page === PAGES_MAX) skipTo(end - 1);
      const params = { partition, from: cursor, limit: PAGE };
      try {
        const answer = await this.requests.run(signal, () =>
          getExact<ChangesPage>(`${this.path}/changes`, params, signal),
        );
        for (const row of answer.changes) taken.push({ id: (this.count += 1), partition, row });
        cursor = answer.next;
      } catch (error) {
        if (!(error instanceof ApiError && error.kind === "too_large")) throw error;
        skipTo(end);
      }
      this.cursors.set(partition, cursor);
    }
    this.cursors.set(partition, cursor);
    return taken;
  }

  private take(found: readonly TableChange[]): void {
    // Within a partition, times and offsets have the same order.
    const time = ({ row }: TableChange) => (row._time ? Date.parse(row._time) : 0);
    const sorted = [...found].sort((one, other) => time(one) - time(other));
    this.waiting.push(...sorted.slice(-KEPT_MAX));
    this.waiting = this.waiting.slice(-KEPT_MAX);
    if (this.isPaused) this.waitingCount = this.waiting.length;
    else this.show();
  }

  private show(): void {
    if (this.waiting.length) {
      this.changes = [...this.waiting.reverse(), ...this.changes].slice(0, KEPT_MAX);
    }
    this.waiting = [];
    this.waitingCount = 0;
  }
}
