/** What the SQL screen shows, as its address names it. */

import { choice, codec, text, texts } from "../../lib/router/codec";

export const ENGINES = ["own", "spark"] as const;
export const VIEWS = ["table", "chart", "plan"] as const;
export const ROWS = ["1000", "10000", "100000"] as const;
export const MARKS = ["auto", "lines", "bars"] as const;

export const params = codec({
  /** What stands in the editor, as it was run. */
  q: text(),
  /** The selected part of it, if only that was run. */
  part: text(),
  engine: choice(ENGINES, "own"),
  /** How many rows are fetched. */
  rows: choice(ROWS, "10000"),
  view: choice(VIEWS, "table"),
  /** The number of a column, with a minus before it for the greatest first. */
  sort: text(),
  /** The cell that is shown whole: row and column, as `12.3`. */
  cell: text(),
  /** Of the chart: columns by name. */
  x: text(),
  y: texts(),
  series: text(),
  marks: choice(MARKS, "auto"),
});
