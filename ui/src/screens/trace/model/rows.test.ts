import fc from "fast-check";
import { expect, test } from "vitest";

import {
  closedSpans,
  changeDepth,
  type Expansion,
  nextFlagged,
  ALL_OPEN,
  reveal,
  rowOf,
  visibleRows,
  ALL_CLOSED,
  toggle,
  withAncestors,
} from "./rows";
import { ancestors } from "./spans";
import { traces } from "./random_traces";

const foldings: fc.Arbitrary<Expansion> = fc.record({
  level: fc.option(fc.nat(6)),
  turned: fc.uniqueArray(
    fc.nat(39).map((i) => i.toString(16).padStart(16, "0")),
    { maxLength: 8 },
  ),
});

test("a row is visible exactly if no ancestor is closed", () => {
  fc.assert(
    fc.property(traces, foldings, (spans, folding) => {
      const closed = closedSpans(spans, folding);
      const wanted = Array.from({ length: spans.count }, (_, i) => i).filter((i) =>
        ancestors(spans, i).every((each) => !closed[each]),
      );
      expect([...visibleRows(spans, closed, null)]).toEqual(wanted);
    }),
  );
});

test("all open shows all rows, all closed the roots", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      expect(visibleRows(spans, closedSpans(spans, ALL_OPEN), null).length).toBe(spans.count);
      const roots = visibleRows(spans, closedSpans(spans, ALL_CLOSED), null);
      expect([...roots].every((index) => spans.parent[index] === -1)).toBe(true);
    }),
  );
});

test("a revealed span is visible, and open spans stay open", () => {
  fc.assert(
    fc.property(traces, foldings, fc.nat(), (spans, folding, number) => {
      const index = number % spans.count;
      const before = closedSpans(spans, folding);
      const after = closedSpans(spans, reveal(spans, folding, index));
      expect([...visibleRows(spans, after, null)]).toContain(index);
      expect(after.some((closed, i) => closed && !before[i])).toBe(false);
    }),
  );
});

test("toggling twice restores", () => {
  fc.assert(
    fc.property(traces, foldings, fc.nat(), (spans, folding, number) => {
      const id = spans.ids[number % spans.count]!;
      const twice = toggle(toggle(folding, id), id);
      expect(closedSpans(spans, twice)).toEqual(closedSpans(spans, folding));
    }),
  );
});

test("all levels can be opened and closed one by one", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      let folding = ALL_CLOSED;
      for (let i = 0; i < spans.deepest; i++) folding = changeDepth(spans, folding, 1);
      expect(folding).toEqual(spans.deepest ? ALL_OPEN : ALL_CLOSED);
      for (let i = 0; i < spans.deepest; i++) folding = changeDepth(spans, folding, -1);
      expect(folding).toEqual(ALL_CLOSED);
    }),
  );
});

test("only kept spans are rows, with their ancestors", () => {
  fc.assert(
    fc.property(traces, fc.array(fc.nat(39)), (spans, marked) => {
      const marks = new Uint8Array(spans.count);
      for (const index of marked) if (index < spans.count) marks[index] = 1;
      const kept = withAncestors(spans, marks);
      const rows = [...visibleRows(spans, closedSpans(spans, ALL_CLOSED), kept)];
      for (const index of rows) {
        const parent = spans.parent[index]!;
        if (parent >= 0) expect(rows).toContain(parent);
        const below = marks.subarray(index, spans.subtreeEnd[index]);
        expect(below.includes(1)).toBe(true);
      }
    }),
  );
});

test("a hidden span maps to the row of its closed ancestor", () => {
  fc.assert(
    fc.property(traces, foldings, (spans, folding) => {
      const closed = closedSpans(spans, folding);
      const rows = visibleRows(spans, closed, null);
      for (let i = 0; i < spans.count; i++) {
        const shown = rows[rowOf(rows, i)]!;
        expect(shown === i || ancestors(spans, i).includes(shown)).toBe(true);
      }
    }),
  );
});

test("next and previous visit all flags and wrap around", () => {
  const marks = Uint8Array.of(0, 1, 0, 0, 1, 1);
  const walk = (by: 1 | -1, from: number) => {
    const seen = [];
    for (let at = from, i = 0; i < 4; i++) seen.push((at = nextFlagged(marks, at, by)));
    return seen;
  };
  expect(walk(1, -1)).toEqual([1, 4, 5, 1]);
  expect(walk(-1, 2)).toEqual([1, 5, 4, 1]);
  expect(nextFlagged(new Uint8Array(3), 0, 1)).toBe(-1);
});
