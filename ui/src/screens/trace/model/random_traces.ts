/** Random traces for tests. */

import fc from "fast-check";

import type { Outline } from "../../../lib/api/types.gen";
import { type Spans, toSpans } from "./spans";

const SERVICES = ["shop", "bank", "mail"];
const NAMES = ["buy", "pay", "SELECT orders", "send"];

interface One {
  readonly up: number;
  readonly offset: number;
  readonly length: number;
  readonly service: number;
  readonly name: number;
  readonly failed: boolean;
}

const one: fc.Arbitrary<One> = fc.record({
  up: fc.nat(5),
  offset: fc.nat(1000),
  length: fc.nat(1000),
  service: fc.nat(SERVICES.length - 1),
  name: fc.nat(NAMES.length - 1),
  failed: fc.boolean(),
});

/** Each span is a child of the previous one or of one of its ancestors, or a root. */
export const traces: fc.Arbitrary<Spans> = fc
  .array(one, { minLength: 1, maxLength: 40 })
  .map((all) => toSpans(outlineOf(all)));

export function outlineOf(all: readonly Partial<One>[]): Outline {
  const parent: number[] = [];
  all.forEach(({ up = 0 }, i) => {
    let above = i - 1;
    for (let step = 0; step < up && above >= 0; step++) above = parent[above]!;
    parent.push(above);
  });
  const indices = all.map((_, i) => i);
  const offset_nano = all.map(({ offset = 0 }) => offset);
  const length_nano = all.map(({ length = 0 }) => length);
  return {
    trace_id: "0".repeat(32),
    span_count: all.length,
    is_cut: false,
    begin: "2026-01-02T03:04:05.000000000Z",
    duration_nano: Math.max(...indices.map((i) => offset_nano[i]! + length_nano[i]!)),
    services: SERVICES,
    names: NAMES,
    kinds: ["INTERNAL"],
    span_id: indices.map((i) => i.toString(16).padStart(16, "0")),
    parent,
    service: all.map(({ service = 0 }) => service),
    name: all.map(({ name = 0 }) => name),
    kind: indices.map(() => 0),
    offset_nano,
    length_nano,
    self_nano: length_nano,
    failed: indices.filter((i) => all[i]!.failed),
    orphans: [],
    critical: indices.flatMap((i) => [i, offset_nano[i]!, offset_nano[i]! + length_nano[i]!]),
  };
}
