/** What somebody likes, whatever he looks at: it stays in this browser, not in the address. */

export type Theme = "system" | "light" | "dark";

const KEY = "frazil.prefs";

interface Kept {
  theme: Theme;
  isUtc: boolean;
}

class Prefs {
  theme = $state<Theme>("system");
  isUtc = $state(false);
  private readonly darkness = matchMedia("(prefers-color-scheme: dark)");
  private isSystemDark = $state(false);

  constructor() {
    const kept = read();
    this.theme = kept.theme ?? "system";
    this.isUtc = kept.isUtc ?? false;
    this.isSystemDark = this.darkness.matches;
    this.darkness.addEventListener("change", (event) => {
      this.isSystemDark = event.matches;
      this.show();
    });
    this.show();
  }

  /** For what is drawn, and cannot follow a style sheet. */
  get isDark(): boolean {
    return this.theme === "dark" || (this.theme === "system" && this.isSystemDark);
  }

  set(change: Partial<Kept>): void {
    Object.assign(this, change);
    localStorage.setItem(KEY, JSON.stringify({ theme: this.theme, isUtc: this.isUtc }));
    this.show();
  }

  private show(): void {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
  }
}

function read(): Partial<Kept> {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Kept>;
    const theme = (["system", "light", "dark"] as const).find((each) => each === kept.theme);
    return { ...(theme && { theme }), isUtc: kept.isUtc === true };
  } catch {
    return {}; // Somebody else's, or half of it.
  }
}

export const prefs = new Prefs();
