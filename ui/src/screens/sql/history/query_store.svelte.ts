/** Recent and saved queries in local storage. */

import {
  type HistoryEntry,
  parseHistory,
  addToHistory,
  type SavedQuery,
  parseSaved,
  addSaved,
} from "./history";

const HISTORY = "frazil.sql.history";
const SAVED = "frazil.sql.saved";

class Kept {
  history = $state.raw<readonly HistoryEntry[]>(parseHistory(localStorage.getItem(HISTORY)));
  saved = $state.raw<readonly SavedQuery[]>(parseSaved(localStorage.getItem(SAVED)));

  remember(entry: HistoryEntry): void {
    // Another tab may have added entries.
    this.history = addToHistory(parseHistory(localStorage.getItem(HISTORY)), entry);
    store(HISTORY, this.history);
  }

  forgetHistory(): void {
    this.history = [];
    store(HISTORY, []);
  }

  save(saved: SavedQuery): void {
    this.saved = addSaved(parseSaved(localStorage.getItem(SAVED)), saved);
    store(SAVED, this.saved);
  }

  drop(name: string): void {
    this.saved = this.saved.filter((each) => each.name !== name);
    store(SAVED, this.saved);
  }
}

function store(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    return; // Storage is full: keep what is there.
  }
}

export const queryStore = new Kept();
