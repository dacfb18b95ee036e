/** History and saved queries, as this browser keeps them. */

import { type Asked, historyOf, remembered, type Saved, savedOf, withSaved } from "./history";

const HISTORY = "frazil.sql.history";
const SAVED = "frazil.sql.saved";

class Kept {
  history = $state.raw<readonly Asked[]>(historyOf(localStorage.getItem(HISTORY)));
  saved = $state.raw<readonly Saved[]>(savedOf(localStorage.getItem(SAVED)));

  remember(asked: Asked): void {
    // Another tab may have added something.
    this.history = remembered(historyOf(localStorage.getItem(HISTORY)), asked);
    store(HISTORY, this.history);
  }

  forgetHistory(): void {
    this.history = [];
    store(HISTORY, []);
  }

  save(saved: Saved): void {
    this.saved = withSaved(savedOf(localStorage.getItem(SAVED)), saved);
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
    return; // The browser has no room left: what is there stays.
  }
}

export const kept = new Kept();
