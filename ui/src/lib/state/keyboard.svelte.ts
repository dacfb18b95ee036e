/** Keyboard shortcuts of the current screen. `?` lists them. */

import { untrack } from "svelte";

export interface Shortcut {
  /** `KeyboardEvent.key`, optionally after `g`: `g l`. `mod+k` is Ctrl or Command. */
  readonly key: string;
  readonly description: string;
  readonly run: (event: KeyboardEvent) => void;
  /** Also active while typing into a field. */
  readonly whileTyping?: boolean;
}

const SECOND_MS = 1000;

class Keyboard {
  private groups = $state.raw<readonly { name: string; keys: readonly Shortcut[] }[]>([]);
  private first = "";
  private firstAt = 0;

  /** All active shortcuts, for the list. */
  get all() {
    return this.groups;
  }

  /**
   * Register shortcuts of a component; call it in an effect: `$effect(() => keyboard.add("Logs",
   * [...]))`.
   */
  add(name: string, list: readonly Shortcut[]): () => void {
    const group = { name, keys: list };
    // Registering must not depend on other registrations.
    this.groups = [...untrack(() => this.groups), group];
    return () => {
      this.groups = this.groups.filter((each) => each !== group);
    };
  }

  /** Handler of the window's key events. */
  press = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.isComposing) return;
    if (presses(event)) return;
    const isTyping = typesInto(event.target);
    const isMod = event.ctrlKey || event.metaKey;
    if (event.altKey || (isMod && event.key.length > 1 && event.key !== "Enter")) return;
    const pressed = isMod ? `mod+${event.key.toLowerCase()}` : event.key;
    const both =
      this.first && event.timeStamp - this.firstAt < SECOND_MS ? `${this.first} ${pressed}` : "";
    const found = (both && this.find(both, isTyping)) || this.find(pressed, isTyping);
    this.first = "";
    if (found) {
      event.preventDefault();
      found.run(event);
    } else if (!isTyping && this.begins(pressed)) {
      this.first = pressed;
      this.firstAt = event.timeStamp;
    }
  };

  /** The last registered group wins. */
  private find(key: string, isTyping: boolean): Shortcut | undefined {
    return this.groups
      .toReversed()
      .flatMap((group) => group.keys)
      .find((each) => each.key === key && (!isTyping || each.whileTyping));
  }

  private begins(pressed: string): boolean {
    return this.groups.some((group) =>
      group.keys.some((each) => each.key.startsWith(`${pressed} `)),
    );
  }
}

/** Whether the key activates the focused element; it then has no other meaning. */
function presses({ key, target, ctrlKey, metaKey }: KeyboardEvent): boolean {
  if ((key !== " " && key !== "Enter") || ctrlKey || metaKey) return false;
  const pressed = "button, a[href], summary, input[type=checkbox], input[type=radio]";
  return target instanceof Element && target.closest(pressed) !== null;
}

function typesInto(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement)
    return !["checkbox", "radio", "button"].includes(target.type);
  return target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName);
}

export const keyboard = new Keyboard();
