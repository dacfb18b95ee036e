/** Commands of the palette (Ctrl+K). */

import { untrack } from "svelte";

export interface Command {
  readonly name: string;
  /** Additional search words. */
  readonly words?: string;
  readonly run: () => void;
}

class Palette {
  isOpen = $state(false);
  private lists = $state.raw<readonly (() => readonly Command[])[]>([]);

  /** Register commands of a component; call it in an effect. */
  add(list: () => readonly Command[]): () => void {
    // Registering must not depend on other registrations.
    this.lists = [...untrack(() => this.lists), list];
    return () => {
      this.lists = this.lists.filter((each) => each !== list);
    };
  }

  get commands(): readonly Command[] {
    return this.lists.toReversed().flatMap((list) => list());
  }
}

export const palette = new Palette();

/** Commands that contain all typed words, in their order. */
export function matchingCommands(commands: readonly Command[], typed: string): Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return commands.filter((command) => {
    const text = `${command.name} ${command.words ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
