/** What the node is asked for what the screen looks for. */

import type { Asked } from "../../lib/api/client";
import { asked, type Stretch } from "../../lib/time/range";
import type { LogsState } from "./params";

export type Looked = Pick<LogsState, "q" | "is" | "not">;

export function askedOf({ q, is, not }: Looked, stretch: Stretch): Asked {
  return { ...asked(stretch), query: q, filter: is, exclude: not };
}
