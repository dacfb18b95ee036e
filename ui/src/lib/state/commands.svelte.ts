/** The palette (Ctrl+K): everything that can be done, found by typing. */

import { untrack } from "svelte";

export interface Command {
  readonly name: string;
  /** More words it is found by. */
  readonly words?: string;
  readonly run: () => void;
}

class Palette {
  isOpen = $state(false);
  private lists = $state.raw<readonly (() => readonly Command[])[]>([]);

  /** Commands of a part of the page, as long as it is there: call it in an effect. */
  add(list: () => readonly Command[]): () => void {
    // Whoever adds does not depend on what others have added.
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

/** Those that have all typed words, in the order in which they are offered. */
export function matchingCommands(commands: readonly Command[], typed: string): Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return commands.filter((command) => {
    const text = `${command.name} ${command.words ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
