/** The API token. It is kept in session storage, until the tab is closed. */

const KEY = "frazil.token";

class Token {
  value = $state(sessionStorage.getItem(KEY) ?? "");
  isRequired = $state(false);
  /** Whether the node has rejected the token that was given. */
  isWrong = $state(false);

  /** The node rejected a request with this token: ask for another one. */
  require(sent: string): void {
    if (sent !== this.value) return; // another one was given meanwhile
    this.isRequired = true;
    this.isWrong = sent !== "";
  }

  set(value: string): void {
    this.value = value.trim();
    this.isRequired = false;
    sessionStorage.setItem(KEY, this.value);
  }
}

export const token = new Token();
