/** What can be chosen on the screen. The screen makes it, and its parts take it from the context. */

import { createContext } from "svelte";

import { stateOf } from "../../house/place.svelte";
import { type Filter, toggledFilter } from "./asking";
import { toggled } from "./columns";
import { fields, type LogsState } from "./fields";

export class Choices {
  private readonly at = stateOf(fields);

  get now(): LogsState {
    return this.at.now;
  }

  set(change: Partial<LogsState>, how: { replace?: boolean } = {}): void {
    this.at.set(change, how);
  }

  href(change: Partial<LogsState>): string {
    return this.at.href(change);
  }

  /** Only records with that value, or none of them; once more, and it is as before. */
  filter(filter: Filter, way: "is" | "not"): void {
    this.at.set(toggledFilter(this.at.now, filter, way));
  }

  /** Only records that have nothing under that name, or that have something. */
  filterMissing(term: string, way: "is" | "not"): void {
    const text = way === "is" ? `-${term}:*` : `${term}:*`;
    this.at.set({ q: `${this.at.now.q} ${text}`.trim() });
  }

  hasColumn(name: string): boolean {
    return this.at.now.columns.some((column) => column.name === name);
  }

  toggleColumn(name: string): void {
    this.at.set({ columns: toggled(this.at.now.columns, name) });
  }

  /** Open a record in its place; the one that is open already is closed. */
  open(cursor: string): void {
    this.at.set({ open: this.at.now.open === cursor ? "" : cursor, around: "" });
  }
}

export const [choicesOfScreen, setChoices] = createContext<Choices>();
