/** Messages of a topic: a page, more pages, and new ones as they come. Bounded. */

import { get, isAborted, messageOf, type QueryParams, queryString } from "../../lib/api/client";
import type { ServerEvent } from "../../lib/api/event_parser";
import { streamEvents } from "../../lib/api/event_stream";
import type { MessagesAnswer, TopicMessage } from "../../lib/api/types.gen";
import type { StateOf } from "../../lib/router/codec";
import type { params } from "./params";

/** Messages kept in the list. */
export const KEPT_MAX = 500;
const PAGE = 100;
/** Bytes of keys and values in the list; an open message is loaded with more. */
const PREVIEW_BYTES = 400;
/** New messages are shown this often. */
const SHOW_MS = 200;

export type Filters = Pick<
  StateOf<typeof params.shape>,
  "partition" | "start" | "offset" | "time" | "search"
>;

export class MessageList {
  messages = $state.raw<readonly TopicMessage[]>([]);
  cursor = $state<string | null>(null);
  /** The last page. */
  answer = $state.raw<MessagesAnswer | null>(null);
  isLoading = $state(true);
  error = $state<string | null>(null);
  /** Why the live connection is down. */
  trouble = $state<string | null>(null);
  isLive = $state(false);
  /** While paused, new messages wait and the list does not change. */
  isPaused = $state(false);
  waitingCount = $state(0);
  skippedCount = $state(0);
  private waiting: TopicMessage[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly path: string,
    private readonly filters: Filters,
  ) {}

  /** Load the first page, then receive new messages if `isLive`, until the signal aborts. */
  async run(isLive: boolean, signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => clearTimeout(this.timer));
    try {
      await this.load(null, signal);
      if (!isLive || signal.aborted || !this.answer) return;
      this.isLive = true;
      const { partition, search } = this.filters;
      // From the end of what was loaded on: no message is missing, none is there twice.
      const start = this.answer.partitions.map(
        (each) => `${each.partition}:${each.last_stable_offset}`,
      );
      const query = queryString({ partition, search, bytes_max: PREVIEW_BYTES });
      await streamEvents(
        `${this.path}/tail${query}`,
        signal,
        (events) => this.take(events),
        (trouble) => (this.trouble = trouble),
        start.join(","),
      );
    } catch (error) {
      if (!signal.aborted && !isAborted(error)) this.error = messageOf(error);
    }
  }

  /** Load the next page. */
  async more(signal: AbortSignal): Promise<void> {
    try {
      await this.load(this.cursor, signal);
    } catch (error) {
      if (!signal.aborted && !isAborted(error)) this.error = messageOf(error);
    }
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.show();
  }

  private async load(after: string | null, signal: AbortSignal): Promise<void> {
    const { partition, start, offset, time, search } = this.filters;
    const params: QueryParams = {
      partition,
      search,
      after,
      limit: PAGE,
      bytes_max: PREVIEW_BYTES,
      order: start === "newest" ? "newest" : "oldest",
      ...(start === "offset" && partition !== null && { offset: offset ?? 0 }),
      ...(start === "time" && { since: time }),
    };
    this.isLoading = true;
    try {
      const answer = await get<MessagesAnswer>(`${this.path}/messages`, params, signal);
      this.answer = answer;
      this.cursor = answer.cursor;
      this.messages = [...this.messages, ...answer.messages];
    } finally {
      if (!signal.aborted) this.isLoading = false;
    }
  }

  private take(events: readonly ServerEvent[]): void {
    for (const { name, data } of events) {
      if (name === "") this.waiting.push(JSON.parse(data) as TopicMessage);
      else if (name === "skipped") {
        this.skippedCount += (JSON.parse(data) as { count: number }).count;
      }
    }
    const dropped = this.waiting.length - KEPT_MAX;
    if (dropped > 0) this.waiting.splice(0, dropped);
    if (this.isPaused) this.waitingCount = this.waiting.length;
    else this.timer ??= setTimeout(() => this.show(), SHOW_MS);
  }

  private show(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.isPaused || !this.waiting.length) return;
    const all = [...this.waiting.toReversed(), ...this.messages];
    this.messages = all.slice(0, KEPT_MAX);
    // Older messages would no longer follow those that are shown.
    if (all.length > KEPT_MAX) this.cursor = null;
    this.waiting = [];
    this.waitingCount = 0;
  }
}
