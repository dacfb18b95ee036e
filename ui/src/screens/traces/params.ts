/** URL parameters of the traces screen. */

import { choice, codec, distinct, flag, number, type StateOf, text } from "../../lib/router/codec";
import { rangeFields } from "../../lib/time/range";

/** Default facets and their display names. */
export const FACETS = new Map([
  ["service_name", "Service"],
  ["name", "Operation"],
  ["status_code", "Status"],
  ["kind", "Kind"],
  ["http_route", "Route"],
  ["http_response_status_code", "HTTP status"],
]);

export const ORDERS = ["newest", "longest", "spans", "errors"] as const;
export type Order = (typeof ORDERS)[number];

export const params = codec({
  /** Search that a span of the trace must match. */
  q: text(),
  /** `name=value`: the span has any included value of each name, and no excluded one. */
  is: distinct(),
  not: distinct(),
  errors: flag(),
  roots: flag(),
  /** Services that the trace must pass, all of them. */
  through: distinct(),
  /** Duration of the trace in milliseconds. */
  min: number(),
  max: number(),
  order: choice(ORDERS, "newest"),
  /** Visibility of the facets and the scatter plot. */
  side: flag(true),
  dots: flag(true),
  facets: distinct([...FACETS.keys()]),
  /** Collapsed facets. */
  folded: distinct(),
});

export type TracesState = StateOf<typeof params.shape>;

/** With the time range, to change both in one history entry. */
export const paramsWithTime = codec({ ...params.shape, ...rangeFields });
