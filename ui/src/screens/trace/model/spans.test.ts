import fc from "fast-check";
import { expect, test } from "vitest";

import { ancestors, criticalTime, toSpans } from "./spans";
import { outlineOf, traces } from "./random_traces";

test("descendants follow their span", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      for (let i = 0; i < spans.count; i++) {
        const below = Array.from({ length: spans.count }, (_, j) => j).filter((j) =>
          ancestors(spans, j).includes(i),
        );
        const subtreeEnd = Array.from(
          { length: spans.subtreeEnd[i]! - i - 1 },
          (_, j) => i + 1 + j,
        );
        expect(below).toEqual(subtreeEnd);
        expect(spans.depth[i]).toBe(ancestors(spans, i).length);
        expect(spans.failedDescendants[i]).toBe(below.filter((j) => spans.isFailed[j]).length);
        expect(spans.children[i]).toBe(below.filter((j) => spans.parent[j] === i).length);
      }
    }),
  );
});

test("critical path pieces are grouped by span, in any order", () => {
  const outline = outlineOf([{ length: 10 }, { length: 4 }]);
  const spans = toSpans({ ...outline, critical: [1, 2, 6, 0, 6, 10, 0, 0, 2] });
  expect(criticalTime(spans, 0)).toBe(6);
  expect(criticalTime(spans, 1)).toBe(4);
});

test("a span that starts before its parent is reported", () => {
  const spans = toSpans(outlineOf([{ offset: 5 }, { offset: 3 }, { offset: 3 }]));
  expect([...spans.isSkewed]).toEqual([0, 1, 0]);
});
