/** Tracks pending requests for the progress bar below the title. */

const DELAY_MS = 250;

class Busy {
  isVisible = $state(false);
  private count = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Register a pending request. Returns a function that ends it. */
  begin(): () => void {
    this.count += 1;
    this.timer ??= setTimeout(() => (this.isVisible = this.count > 0), DELAY_MS);
    return () => {
      this.count -= 1;
      if (this.count > 0) return;
      clearTimeout(this.timer);
      this.timer = undefined;
      this.isVisible = false;
    };
  }
}

export const busy = new Busy();
