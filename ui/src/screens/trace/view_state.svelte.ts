/** What is looked at of one trace: everything that the parts of the screen share. */

import type { FindAnswer, LogRow } from "../../lib/api/types.gen";
import { get } from "../../lib/api/client";
import { stateOf } from "../../lib/router/router.svelte";
import { Question } from "../../lib/api/resource.svelte";
import { fields } from "./params";
import {
  countOf,
  filtersOf,
  foundHere,
  isNothing,
  joined,
  needsNode,
  wantedOf,
} from "./model/find";
import { Later } from "./debounce";
import { logDots } from "./logs/logs";
import {
  closedOf,
  deeper,
  type Folding,
  nextMarked,
  OPEN,
  reveal,
  rowOf,
  rowsOf,
  SHUT,
  turn,
  withAbove,
} from "./model/rows";
import { above, type Spans } from "./model/spans";
import { isWhole, panned, type Window, windowOf, zoomed } from "./model/window";

const NONE = -1;

export class View {
  readonly at = stateOf(fields);
  readonly spans: Spans;
  logs = $state.raw<readonly LogRow[]>([]);

  /** The chosen span; it may be ahead of the address while a key is held down. */
  chosen = $state(NONE);
  /** The window of time; ahead of the address while it is moved. */
  window = $state.raw<Window>({ low: 0, high: 1 });
  /** What is typed; ahead of the address while somebody types. */
  typed = $state("");
  pointed = $state(NONE);

  private readonly later = new Later((change) => this.at.set(change, { replace: true }));
  private readonly asked = new Question<{ q: string; ids: readonly string[] }>();

  // Only what has changed is worked out anew: the address changes with every step.
  private readonly level = $derived.by(() => this.at.now.level);
  private readonly turned = $derived.by(() => this.at.now.turned.join());
  readonly closed: Uint8Array = $derived.by(() => closedOf(this.spans, this.folding));
  readonly wanted = $derived.by(() => wantedOf(this.typed));
  private readonly here = $derived.by(() => foundHere(this.spans, this.wanted));
  readonly matches: Uint8Array = $derived.by(() => {
    const answer = this.asked.answer;
    return answer && answer.q === this.typed && needsNode(this.wanted)
      ? joined(this.spans, this.here, answer.ids)
      : this.here;
  });
  readonly matchCount = $derived.by(() => countOf(this.matches));
  readonly isFinding = $derived.by(() => !isNothing(this.wanted));
  private readonly only = $derived.by(() => this.at.now.only);
  private readonly kept = $derived.by(() =>
    this.only && this.isFinding ? withAbove(this.spans, this.matches) : null,
  );
  readonly rows: Int32Array = $derived.by(() => rowsOf(this.spans, this.closed, this.kept));
  readonly dots = $derived.by(() => logDots(this.spans, this.rows, this.logs));

  constructor(spans: Spans) {
    this.spans = spans;
    this.follow();
  }

  get folding(): Folding {
    return { level: this.level, turned: this.turned === "" ? [] : this.turned.split(",") };
  }

  get isOpen(): boolean {
    return this.chosen >= 0 && this.at.now.panel;
  }

  get findError(): string | null {
    return this.asked.error;
  }

  /** Is there more to be found than is known by now? */
  get isAsking(): boolean {
    const isAnswered = this.asked.answer?.q === this.typed || this.asked.error !== null;
    return needsNode(this.wanted) && !isAnswered;
  }

  /** Go where the address says, unless we are about to change it ourselves. */
  follow(): void {
    const { span, low, high, q } = this.at.now;
    if (this.later.isWaiting) return;
    this.chosen = this.spans.placeOf.get(span) ?? NONE;
    this.window = windowOf(low, high, this.spans.total);
    this.typed = q;
  }

  /** Ask the node for what cannot be found here; as an effect. */
  find(): () => void {
    const { typed, wanted } = this;
    if (!needsNode(wanted)) return () => {};
    const asked = { search: wanted.text, filter: filtersOf(wanted) };
    const timer = new AbortController();
    const wait = setTimeout(() => {
      const stop = this.asked.ask(async (signal) => {
        const path = `api/v1/traces/${this.spans.traceId}/find`;
        const answer = await get<FindAnswer>(path, asked, signal);
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
    this.later.close();
  }

  /** A span that somebody clicked on: a step in the history. */
  choose(place: number): void {
    this.chosen = place;
    this.go({ span: this.spans.ids[place] ?? "", panel: true });
  }

  /** A span that somebody moves to by key: none. */
  moveTo(place: number): void {
    if (place < 0 || place >= this.spans.count) return;
    this.chosen = place;
    this.later.set({ span: this.spans.ids[place]! });
  }

  /** The same, and whatever hides it is opened. */
  reveal(place: number): void {
    if (place < 0) return;
    const isHidden = above(this.spans, place).some((each) => this.closed[each]);
    if (!isHidden) return this.moveTo(place);
    // What has to be opened is a step in the history; going from one to the next is none.
    this.chosen = place;
    this.go({ ...reveal(this.spans, this.folding, place), span: this.spans.ids[place]! });
  }

  /** To the next row, or the one before. */
  step(by: 1 | -1): void {
    const row = this.chosen < 0 ? (by > 0 ? -1 : 1) : rowOf(this.rows, this.chosen);
    const next = Math.min(Math.max(row + by, 0), this.rows.length - 1);
    this.moveTo(this.rows[next] ?? NONE);
  }

  nextMatch(by: 1 | -1): void {
    this.reveal(nextMarked(this.matches, this.chosen, by));
  }

  nextError(by: 1 | -1): void {
    this.reveal(nextMarked(this.spans.isFailed, this.chosen, by));
  }

  showPanel(panel: boolean): void {
    this.go({ panel });
  }

  turn(place: number): void {
    const id = this.spans.ids[place];
    if (id !== undefined && this.spans.children[place]) this.fold(turn(this.folding, id));
  }

  /** As in a tree: open it, or go to the first one below; close it, or go to the one above. */
  open(): void {
    const place = this.chosen;
    if (place < 0 || !this.spans.children[place]) return;
    if (this.closed[place]) this.turn(place);
    else this.moveTo(place + 1);
  }

  shut(): void {
    const place = this.chosen;
    if (place < 0) return;
    if (this.spans.children[place] && !this.closed[place]) this.turn(place);
    else this.moveTo(this.spans.parent[place]!);
  }

  foldAll(isOpen: boolean): void {
    this.fold(isOpen ? OPEN : SHUT);
  }

  foldDeeper(by: 1 | -1): void {
    this.fold(deeper(this.spans, this.folding, by));
  }

  private fold({ level, turned }: Folding): void {
    this.go({ level, turned: [...turned] });
  }

  /** Look at another window of time, as a step in the history or as a part of a movement. */
  look(window: Window, isStep = false): void {
    this.window = window;
    const isAll = isWhole(window, this.spans.total);
    const change = {
      low: isAll ? null : Math.round(window.low),
      high: isAll ? null : Math.round(window.high),
    };
    if (isStep) this.go(change);
    else this.later.set(change);
  }

  zoom(factor: number, share = 0.5): void {
    this.look(zoomed(this.window, factor, share, this.spans.total));
  }

  pan(share: number): void {
    this.look(panned(this.window, share, this.spans.total));
  }

  lookAtAll(): void {
    this.look({ low: 0, high: this.spans.total }, true);
  }

  type(text: string): void {
    this.typed = text;
    this.later.set({ q: text });
  }

  /** A search that somebody clicked on. */
  search(text: string): void {
    this.typed = text;
    this.go({ q: text, tab: "waterfall" });
  }

  private go(change: Parameters<typeof this.at.set>[0]): void {
    this.later.flush();
    this.at.set(change);
  }
}

const FIND_MS = 150;
