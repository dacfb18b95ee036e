/** The token that a node may ask for. It is kept as long as the tab is open, and nowhere else. */

const KEY = "frazil.token";

class Token {
  value = $state(sessionStorage.getItem(KEY) ?? "");
  isRequired = $state(false);

  /** The node does not know who asks, or does not believe it. */
  require(): void {
    this.isRequired = true;
  }

  set(value: string): void {
    this.value = value.trim();
    this.isRequired = false;
    sessionStorage.setItem(KEY, this.value);
  }
}

export const token = new Token();
