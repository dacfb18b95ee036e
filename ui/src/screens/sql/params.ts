/** URL parameters of the SQL screen. */

import { choice, codec, text, texts } from "../../lib/router/codec";

export const ENGINES = ["own", "spark"] as const;
export const VIEWS = ["table", "chart", "plan"] as const;
export const ROWS = ["1000", "10000", "100000"] as const;
export const MARKS = ["auto", "lines", "bars"] as const;

export const params = codec({
  /** Editor text, as it was run. */
  q: text(),
  /** The selected part, if only that was run. */
  part: text(),
  /** Saved query; without a text, it is loaded and run. */
  saved: text(),
  engine: choice(ENGINES, "own"),
  /** Row limit. */
  rows: choice(ROWS, "10000"),
  view: choice(VIEWS, "table"),
  /** Sort column, with a minus for descending. */
  sort: text(),
  /** Open cell as `row.column`. */
  cell: text(),
  /** Chart columns, by name. */
  x: text(),
  y: texts(),
  series: text(),
  marks: choice(MARKS, "auto"),
});
