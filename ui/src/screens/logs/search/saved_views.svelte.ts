/** Saved views, stored in this browser. */

const KEY = "frazil.views.logs";
const VIEWS_MAX = 100;

export interface View {
  readonly name: string;
  /** Query string of the address. */
  readonly query: string;
}

class Views {
  all = $state.raw<readonly View[]>(read());

  /** Replaces a view of the same name. */
  save(view: View): void {
    const others = this.all.filter(({ name }) => name !== view.name);
    this.keep([...others, view].sort((one, other) => one.name.localeCompare(other.name)));
  }

  remove(name: string): void {
    this.keep(this.all.filter((view) => view.name !== name));
  }

  private keep(views: readonly View[]): void {
    this.all = views.slice(0, VIEWS_MAX);
    const stored = Object.fromEntries(this.all.map(({ name, query }) => [name, query]));
    localStorage.setItem(KEY, JSON.stringify(stored));
  }
}

function read(): View[] {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Record<string, unknown>;
    return Object.entries(stored).flatMap(([name, query]) =>
      typeof query === "string" ? [{ name, query }] : [],
    );
  } catch {
    return []; // Invalid or truncated.
  }
}

export const views = new Views();
