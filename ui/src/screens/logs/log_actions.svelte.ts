/** What can be chosen on the screen. The screen makes it, and its parts take it from the context. */

import { createContext } from "svelte";

import { stateOf } from "../../lib/router/router.svelte";
import { toggled, type Way } from "../../components/facets/selection";
import { toggled as toggledColumn } from "./list/columns";
import { fields, type LogsState } from "./params";

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
  filter({ name, value }: { name: string; value: string }, way: Way): void {
    this.at.set(toggled(this.at.now, name, value, way));
  }

  hasColumn(name: string): boolean {
    return this.at.now.columns.some((column) => column.name === name);
  }

  toggleColumn(name: string): void {
    this.at.set({ columns: toggledColumn(this.at.now.columns, name) });
  }

  /** Open a record in its place; the one that is open already is closed. */
  open(cursor: string): void {
    this.at.set({ open: this.at.now.open === cursor ? "" : cursor, around: "" });
  }
}

export const [choicesOfScreen, setChoices] = createContext<Choices>();
