/** Recent queries in local storage. */

import { addToHistory, type HistoryEntry, parseHistory } from "./history";

const KEY = "frazil.sql.history";

class QueryStore {
  history = $state.raw<readonly HistoryEntry[]>(parseHistory(localStorage.getItem(KEY)));

  remember(entry: HistoryEntry): void {
    // Another tab may have added entries.
    this.history = addToHistory(parseHistory(localStorage.getItem(KEY)), entry);
    store(this.history);
  }

  forgetHistory(): void {
    this.history = [];
    store([]);
  }
}

function store(value: readonly HistoryEntry[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(value));
  } catch {
    return; // Storage is full: keep what is there.
  }
}

export const queryStore = new QueryStore();
