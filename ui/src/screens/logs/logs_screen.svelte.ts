/** State and actions of the logs screen, shared with its components through a context. */

import { createContext } from "svelte";

import { urlState } from "../../lib/router/router.svelte";
import { toggleFilter, type FilterMode } from "../../components/facets/selection";
import { toggleColumn } from "./list/columns";
import { params, type LogsState } from "./params";

export class LogsScreen {
  private readonly url = urlState(params);

  get params(): LogsState {
    return this.url.params;
  }

  set(change: Partial<LogsState>, how: { replace?: boolean } = {}): void {
    this.url.set(change, how);
  }

  href(change: Partial<LogsState>): string {
    return this.url.href(change);
  }

  /** Toggle a filter on a value. */
  filter({ name, value }: { name: string; value: string }, way: FilterMode): void {
    this.url.set(toggleFilter(this.url.params, name, value, way));
  }

  hasColumn(name: string): boolean {
    return this.url.params.columns.some((column) => column.name === name);
  }

  toggleColumn(name: string): void {
    this.url.set({ columns: toggleColumn(this.url.params.columns, name) });
  }

  /** Open a record, or close it if it is open. */
  open(cursor: string): void {
    this.url.set({ open: this.url.params.open === cursor ? "" : cursor, around: "" });
  }
}

export const [logsScreen, setLogsScreen] = createContext<LogsScreen>();
