/** What the node is asked for what the screen looks for. */

import type { Asked } from "../../house/api";
import { asked, type Stretch } from "../../house/range";
import type { LogsState } from "./fields";

export type Looked = Pick<LogsState, "q" | "is" | "not">;

export function askedOf({ q, is, not }: Looked, stretch: Stretch): Asked {
  return { ...asked(stretch), query: q, filter: is, exclude: not };
}
