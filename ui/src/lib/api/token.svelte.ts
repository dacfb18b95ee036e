/** The API token. It is kept in session storage, until the tab is closed. */

const KEY = "frazil.token";

class Token {
  value = $state(sessionStorage.getItem(KEY) ?? "");
  isRequired = $state(false);

  /** The node rejected the request: ask for a token. */
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
