/** Commands of the palette (Ctrl+K). */

import { untrack } from "svelte";

export interface Command {
  readonly name: string;
  /** What it opens, such as a service; empty for commands. */
  readonly kind?: string;
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

/** Commands that contain all typed words. Names that begin with the text come first. */
export function matchingCommands(commands: readonly Command[], typed: string): Command[] {
  const text = typed.trim().toLowerCase();
  const words = text.split(/\s+/).filter(Boolean);
  const found = commands.filter((command) => {
    const all = `${command.name} ${command.words ?? ""}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
  const begins = ({ name }: Command) => Boolean(text) && name.toLowerCase().startsWith(text);
  return [...found.filter(begins), ...found.filter((command) => !begins(command))];
}
