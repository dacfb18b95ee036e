import { choice, codec, number } from "../../lib/router/codec";

export const SPLITS = ["service", "signal"] as const;
export const SIGNALS = ["all", "logs", "spans", "metrics"] as const;
export const ORDERS = ["rows", "growth", "service"] as const;

export const params = codec({
  /** What the chart is stacked by, and what counts. */
  by: choice(SPLITS, "service"),
  signal: choice(SIGNALS, "all"),
  order: choice(ORDERS, "rows"),
  /** Of a gigabyte that is kept for a month, in whatever money. */
  price: number(0.023),
  /** For how many days rows are kept. */
  keep: number(30),
});
