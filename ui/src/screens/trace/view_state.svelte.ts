/** State of the trace screen, shared by its components. */

import type { FindAnswer, LogRow } from "../../lib/api/types.gen";
import { get } from "../../lib/api/client";
import { urlState } from "../../lib/router/router.svelte";
import { Resource } from "../../lib/api/resource.svelte";
import { params } from "./params";
import {
  countMatches,
  filtersOf,
  localMatches,
  isEmptyQuery,
  addMatches,
  needsNode,
  parseFindQuery,
} from "./model/find";
import { DebouncedUrl } from "./debounce";
import { logDots } from "./logs/logs";
import {
  closedSpans,
  changeDepth,
  type Expansion,
  nextFlagged,
  ALL_OPEN,
  reveal,
  rowOf,
  visibleRows,
  ALL_CLOSED,
  toggle,
  withAncestors,
} from "./model/rows";
import { ancestors, type Spans } from "./model/spans";
import { isFullWindow, panWindow, type Window, windowOf, zoomWindow } from "./model/window";

const NONE = -1;

export class ViewState {
  readonly url = urlState(params);
  readonly spans: Spans;
  logs = $state.raw<readonly LogRow[]>([]);

  /** Selected span; ahead of the address while a key is held. */
  chosen = $state(NONE);
  /** Time window; ahead of the address while it moves. */
  window = $state.raw<Window>({ low: 0, high: 1 });
  /** Find text; ahead of the address while typing. */
  typed = $state("");
  pointed = $state(NONE);

  private readonly deferred = new DebouncedUrl((change) => this.url.set(change, { replace: true }));
  private readonly nodeMatches = new Resource<{ q: string; ids: readonly string[] }>();

  // Separate derived values: the address changes with every step.
  private readonly level = $derived.by(() => this.url.params.level);
  private readonly turned = $derived.by(() => this.url.params.turned.join());
  readonly closed: Uint8Array = $derived.by(() => closedSpans(this.spans, this.folding));
  readonly findQuery = $derived.by(() => parseFindQuery(this.typed));
  private readonly localMatches = $derived.by(() => localMatches(this.spans, this.findQuery));
  readonly matches: Uint8Array = $derived.by(() => {
    const answer = this.nodeMatches.data;
    return answer && answer.q === this.typed && needsNode(this.findQuery)
      ? addMatches(this.spans, this.localMatches, answer.ids)
      : this.localMatches;
  });
  readonly matchCount = $derived.by(() => countMatches(this.matches));
  readonly isFinding = $derived.by(() => !isEmptyQuery(this.findQuery));
  private readonly only = $derived.by(() => this.url.params.only);
  private readonly keptSpans = $derived.by(() =>
    this.only && this.isFinding ? withAncestors(this.spans, this.matches) : null,
  );
  readonly rows: Int32Array = $derived.by(() =>
    visibleRows(this.spans, this.closed, this.keptSpans),
  );
  readonly dots = $derived.by(() => logDots(this.spans, this.rows, this.logs));

  constructor(spans: Spans) {
    this.spans = spans;
    this.follow();
  }

  get folding(): Expansion {
    return { level: this.level, turned: this.turned === "" ? [] : this.turned.split(",") };
  }

  get isOpen(): boolean {
    return this.chosen >= 0 && this.url.params.panel;
  }

  get findError(): string | null {
    return this.nodeMatches.error;
  }

  /** Whether the node's matches are pending. */
  get isLoading(): boolean {
    const isAnswered = this.nodeMatches.data?.q === this.typed || this.nodeMatches.error !== null;
    return needsNode(this.findQuery) && !isAnswered;
  }

  /** Follow the address, unless a change of our own is pending. */
  follow(): void {
    const { span, low, high, q } = this.url.params;
    if (this.deferred.isWaiting) return;
    this.chosen = this.spans.indexOf.get(span) ?? NONE;
    this.window = windowOf(low, high, this.spans.total);
    this.typed = q;
  }

  /** Fetch the node's matches; for use as an effect. */
  find(): () => void {
    const { typed, findQuery } = this;
    if (!needsNode(findQuery)) return () => {};
    const findParams = { search: findQuery.text, filter: filtersOf(findQuery) };
    const timer = new AbortController();
    const wait = setTimeout(() => {
      const stop = this.nodeMatches.load(async (signal) => {
        const path = `api/v1/traces/${this.spans.traceId}/find`;
        const answer = await get<FindAnswer>(path, findParams, signal);
        return { q: typed, ids: answer.span_ids };
      });
      timer.signal.addEventListener("abort", stop);
    }, FIND_MS);
    return () => {
      clearTimeout(wait);
      timer.abort();
    };
  }

  close(): void {
    this.deferred.close();
  }

  /** Select a span by click; adds a history entry. */
  choose(index: number): void {
    this.chosen = index;
    this.go({ span: this.spans.ids[index] ?? "", panel: true });
  }

  /** Select a span by key; adds no history entry. */
  moveTo(index: number): void {
    if (index < 0 || index >= this.spans.count) return;
    this.chosen = index;
    this.deferred.set({ span: this.spans.ids[index]! });
  }

  /** Select a span and open its ancestors. */
  reveal(index: number): void {
    if (index < 0) return;
    const isHidden = ancestors(this.spans, index).some((each) => this.closed[each]);
    if (!isHidden) return this.moveTo(index);
    // Opening ancestors adds a history entry; stepping between matches does not.
    this.chosen = index;
    this.go({ ...reveal(this.spans, this.folding, index), span: this.spans.ids[index]! });
  }

  /** Select the next or previous row. */
  step(by: 1 | -1): void {
    const row = this.chosen < 0 ? (by > 0 ? -1 : 1) : rowOf(this.rows, this.chosen);
    const next = Math.min(Math.max(row + by, 0), this.rows.length - 1);
    this.moveTo(this.rows[next] ?? NONE);
  }

  nextMatch(by: 1 | -1): void {
    this.reveal(nextFlagged(this.matches, this.chosen, by));
  }

  nextError(by: 1 | -1): void {
    this.reveal(nextFlagged(this.spans.isFailed, this.chosen, by));
  }

  showPanel(panel: boolean): void {
    this.go({ panel });
  }

  toggle(index: number): void {
    const id = this.spans.ids[index];
    if (id !== undefined && this.spans.children[index]) this.fold(toggle(this.folding, id));
  }

  /** As in a tree: open it or go to its first child; close it or go to its parent. */
  open(): void {
    const index = this.chosen;
    if (index < 0 || !this.spans.children[index]) return;
    if (this.closed[index]) this.toggle(index);
    else this.moveTo(index + 1);
  }

  shut(): void {
    const index = this.chosen;
    if (index < 0) return;
    if (this.spans.children[index] && !this.closed[index]) this.toggle(index);
    else this.moveTo(this.spans.parent[index]!);
  }

  foldAll(isOpen: boolean): void {
    this.fold(isOpen ? ALL_OPEN : ALL_CLOSED);
  }

  foldDeeper(by: 1 | -1): void {
    this.fold(changeDepth(this.spans, this.folding, by));
  }

  private fold({ level, turned }: Expansion): void {
    this.go({ level, turned: [...turned] });
  }

  /** Set the time window, with a history entry or as part of a movement. */
  look(window: Window, isStep = false): void {
    this.window = window;
    const isAll = isFullWindow(window, this.spans.total);
    const change = {
      low: isAll ? null : Math.round(window.low),
      high: isAll ? null : Math.round(window.high),
    };
    if (isStep) this.go(change);
    else this.deferred.set(change);
  }

  zoom(factor: number, share = 0.5): void {
    this.look(zoomWindow(this.window, factor, share, this.spans.total));
  }

  pan(share: number): void {
    this.look(panWindow(this.window, share, this.spans.total));
  }

  lookAtAll(): void {
    this.look({ low: 0, high: this.spans.total }, true);
  }

  type(text: string): void {
    this.typed = text;
    this.deferred.set({ q: text });
  }

  /** Start a search from a link. */
  search(text: string): void {
    this.typed = text;
    this.go({ q: text, tab: "waterfall" });
  }

  private go(change: Parameters<typeof this.url.set>[0]): void {
    this.deferred.flush();
    this.url.set(change);
  }
}

const FIND_MS = 150;
