/** Parses the output of EXPLAIN into trees. */

export interface Step {
  readonly text: string;
  readonly inside: readonly Step[];
}

export interface Section {
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Deeper indentation means a child of the line above. */
export function stepsOf(text: string): Step[] {
  const root: { text: string; inside: Step[]; indent: number } = {
    text: "",
    inside: [],
    indent: -1,
  };
  const open = [root];
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const indent = line.length - line.trimStart().length;
    while (open.length > 1 && open.at(-1)!.indent >= indent) open.pop();
    const step = { text: line.trim(), inside: [] as Step[], indent };
    open.at(-1)!.inside.push(step);
    open.push(step);
  }
  return root.inside;
}

const NAMES: Readonly<Record<string, string>> = {
  place: "Engine",
  order: "Scan order",
  pieces: "Scan",
  logical_plan: "Logical plan",
  physical_plan: "Physical plan",
};

/** Group the rows of EXPLAIN by name. */
export function sectionsOf(rows: readonly (readonly [string, string])[]): Section[] {
  const found = new Map<string, string[]>();
  for (const [name, text] of rows) found.set(name, [...(found.get(name) ?? []), text]);
  return [...found].map(([name, texts]) => ({
    name: NAMES[name] ?? name,
    steps: stepsOf(texts.join("\n")),
  }));
}
