import { choice, codec, number } from "../../lib/router/codec";

export const SPLITS = ["service", "signal"] as const;
export const SIGNALS = ["all", "logs", "spans", "metrics"] as const;
export const ORDERS = ["rows", "growth", "service"] as const;

export const params = codec({
  /** URL parameters of the volume screen. */
  by: choice(SPLITS, "service"),
  signal: choice(SIGNALS, "all"),
  order: choice(ORDERS, "rows"),
  /** Price of a gigabyte per month. */
  price: number(0.023),
  /** Retention in days. */
  keep: number(30),
});
