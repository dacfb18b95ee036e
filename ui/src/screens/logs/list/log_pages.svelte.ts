/**
 * A list of any length, of which only visible pages are loaded.
 *
 * Page cursors are fetched once, with the count, so that new records do not shift the list.
 */

import {
  ApiError,
  request,
  type QueryParams,
  isAborted,
  messageOf,
  queryString,
} from "../../../lib/api/client";
import { type Order, pageOf } from "./cursor";
import { type LogRecord, parseRecord } from "./records";

export const PAGE_ROWS = 500;
/** Limits of pages and text kept; the least recently viewed page is dropped first. */
const PAGES_MAX = 12;
const TEXT_MAX = 48 * 1024 * 1024;
/** Pages that are scrolled past within this time are not requested. */
const PASSED_MS = 80;
/** Rows ahead of the viewport at which a page is requested. */
const AHEAD = 60;

interface Page {
  readonly rows: readonly LogRecord[];
  readonly size: number;
}

interface PagesAnswer {
  count: number;
  every: number;
  cursors: string[];
  is_cut: boolean;
}

export class LogPages {
  /** Number of rows; the number loaded until all are counted. */
  count = $state(0);
  isCounted = $state(false);
  /** There are more rows than can be reached. */
  isCut = $state(false);
  error = $state<string | null>(null);
  /** Changes when rows are loaded. */
  private version = $state(0);
  private readonly pages = new Map<number, Page>();
  private readonly loading = new Map<number, AbortController>();
  private readonly life = new AbortController();
  private cursors: readonly string[] = [];
  private wanted = "";
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly params: QueryParams,
    readonly order: Order,
  ) {}

  /** Load the first page. The count takes longer and follows. */
  async begin(): Promise<void> {
    const first = await this.fetched(null, PAGE_ROWS, this.life.signal);
    this.keep(0, first);
    this.count = first.rows.length;
    if (first.rows.length < PAGE_ROWS) this.isCounted = true;
    else void this.countAll();
  }

  close(): void {
    clearTimeout(this.timer);
    this.life.abort();
    for (const abort of this.loading.values()) abort.abort();
  }

  /** A row, if its page is loaded. */
  row(index: number): LogRecord | undefined {
    void this.version;
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.rows[index % PAGE_ROWS];
  }

  /** Load visible rows and abort requests for others. */
  see(first: number, last: number): void {
    const from = Math.floor(Math.max(0, first - AHEAD) / PAGE_ROWS);
    const to = Math.floor(Math.min(this.count - 1, last + AHEAD) / PAGE_ROWS);
    const wanted = `${from}-${to}`;
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      for (const [number, abort] of this.loading) if (number < from || number > to) abort.abort();
      for (let number = from; number <= to; number++) void this.load(number);
    }, PASSED_MS);
  }

  /** Retry failed requests. */
  retry = (): void => {
    this.error = null;
    const [from = 0, to = 0] = this.wanted.split("-").map(Number);
    for (let number = from; number <= to; number++) void this.load(number);
  };

  /** Index of the record at a cursor, or -1. Loads its page. */
  async find(cursor: string): Promise<number> {
    const number = pageOf(cursor, this.cursors, this.order);
    await this.load(number);
    const place = this.pages.get(number)?.rows.findIndex((row) => row.cursor === cursor) ?? -1;
    return place < 0 ? -1 : number * PAGE_ROWS + place;
  }

  private async countAll(): Promise<void> {
    try {
      const path = `api/v1/logs/pages${queryString({ ...this.params, order: this.order, every: PAGE_ROWS })}`;
      const answer = await request(path, { signal: this.life.signal });
      const { count, cursors, is_cut } = (await answer.json()) as PagesAnswer;
      this.cursors = cursors;
      this.count = Math.max(count, this.count);
      this.isCut = is_cut;
      this.isCounted = true;
    } catch (error) {
      if (!isAborted(error)) this.error = messageOf(error);
    }
  }

  private async load(number: number): Promise<void> {
    const kept = this.pages.get(number);
    if (kept) {
      // Keep the map in order of last use.
      this.pages.delete(number);
      this.pages.set(number, kept);
      return;
    }
    const after = number === 0 ? null : this.cursors[number - 1];
    if (this.loading.has(number) || after === undefined) return;
    const abort = new AbortController();
    this.loading.set(number, abort);
    try {
      this.keep(number, await this.fetched(after, PAGE_ROWS, abort.signal));
      this.error = null;
    } catch (error) {
      if (!isAborted(error)) this.error = messageOf(error);
      else this.wanted = ""; // Requested again when visible again.
    } finally {
      this.loading.delete(number);
    }
  }

  private keep(number: number, page: Page): void {
    this.pages.set(number, page);
    let size = [...this.pages.values()].reduce((sum, each) => sum + each.size, 0);
    for (const [oldest, { size: its }] of this.pages) {
      if (oldest === number || (this.pages.size <= PAGES_MAX && size <= TEXT_MAX)) break;
      this.pages.delete(oldest);
      size -= its;
    }
    this.version += 1;
  }

  /** Fetch rows, in several requests if one response would be too large. */
  private async fetched(after: string | null, limit: number, signal: AbortSignal): Promise<Page> {
    try {
      const params = { ...this.params, order: this.order, after, limit };
      const text = await (await request(`api/v1/logs${queryString(params)}`, { signal })).text();
      return { rows: parseRecord<{ logs: LogRecord[] }>(text).logs, size: text.length };
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== "too_large" || limit === 1) throw error;
      const half = await this.fetched(after, Math.ceil(limit / 2), signal);
      const last = half.rows.at(-1);
      if (!last || half.rows.length < Math.ceil(limit / 2)) return half;
      const rest = await this.fetched(last.cursor, Math.floor(limit / 2), signal);
      return { rows: [...half.rows, ...rest.rows], size: half.size + rest.size };
    }
  }
}
