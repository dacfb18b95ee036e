/** What the traces screen shows, as its address has it. */

import { choice, codec, distinct, flag, number, type StateOf, text } from "../../lib/router/codec";
import { rangeFields } from "../../lib/time/range";

/** Which values are counted when nobody says, and how people call them. */
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
  /** The search box: what a span of the trace must fit. */
  q: text(),
  /** `name=value`: that span has one of the values of each name, and none of `not`. */
  is: distinct(),
  not: distinct(),
  errors: flag(),
  roots: flag(),
  /** Services that the trace goes through, all of them. */
  through: distinct(),
  /** How long the trace took, in milliseconds. */
  min: number(),
  max: number(),
  order: choice(ORDERS, "newest"),
  /** What is there at all: the facets, the picture. */
  side: flag(true),
  dots: flag(true),
  facets: distinct([...FACETS.keys()]),
  /** Facets that are folded. */
  folded: distinct(),
});

export type TracesState = StateOf<typeof params.shape>;

/** The same with the time, for what changes both in one step. */
export const paramsWithTime = codec({ ...params.shape, ...rangeFields });
