/** User preferences, stored in this browser and not in the address. */

export type Theme = "system" | "light" | "dark";

const KEY = "frazil.prefs";

interface Preferences {
  theme: Theme;
  isUtc: boolean;
}

class Prefs {
  theme = $state<Theme>("system");
  isUtc = $state(false);
  private readonly darkQuery = matchMedia("(prefers-color-scheme: dark)");
  private isSystemDark = $state(false);

  constructor() {
    const stored = read();
    this.theme = stored.theme ?? "system";
    this.isUtc = stored.isUtc ?? false;
    this.isSystemDark = this.darkQuery.matches;
    this.darkQuery.addEventListener("change", (event) => {
      this.isSystemDark = event.matches;
      this.apply();
    });
    this.apply();
  }

  /** For canvases, which cannot follow a style sheet. */
  get isDark(): boolean {
    return this.theme === "dark" || (this.theme === "system" && this.isSystemDark);
  }

  set(change: Partial<Preferences>): void {
    Object.assign(this, change);
    localStorage.setItem(KEY, JSON.stringify({ theme: this.theme, isUtc: this.isUtc }));
    this.apply();
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
  }
}

function read(): Partial<Preferences> {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Preferences>;
    const theme = (["system", "light", "dark"] as const).find((each) => each === stored.theme);
    return { ...(theme && { theme }), isUtc: stored.isUtc === true };
  } catch {
    return {}; // Invalid or truncated.
  }
}

export const prefs = new Prefs();
