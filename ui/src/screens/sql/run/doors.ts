/** Which endpoint a text goes to: queries to `sql`, what defines and changes to `statements`. */

import { tokenize } from "../editor/tokens";

const CHANGING: ReadonlySet<string> = new Set([
  "create",
  "alter",
  "copy",
  "drop",
  "pause",
  "resume",
  "list",
  "validate",
  "insert",
  "upsert",
  "update",
  "delete",
]);
/** After SHOW; the engine lists everything else. */
const SHOWN: ReadonlySet<string> = new Set([
  "stages",
  "pipes",
  "external",
  "views",
  "definitions",
  "keyed",
]);

/** Whether a text is a statement, by its first words. The node decides what it does. */
export function isStatement(text: string): boolean {
  const [first, second] = tokenize(text).filter(
    (token, index, all) => token.name !== ";" || all.slice(0, index).some((t) => t.name !== ";"),
  );
  if (first?.kind !== "word") return false;
  if (CHANGING.has(first.name)) return true;
  if (first.name === "show") return second?.kind === "word" && SHOWN.has(second.name);
  const isPath = second?.name === "@" || second?.name.startsWith("'@");
  return (first.name === "describe" || first.name === "desc") && isPath === true;
}
