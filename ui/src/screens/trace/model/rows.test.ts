import fc from "fast-check";
import { expect, test } from "vitest";

import {
  closedOf,
  deeper,
  type Folding,
  nextMarked,
  OPEN,
  reveal,
  rowOf,
  rowsOf,
  SHUT,
  turn,
  withAbove,
} from "./rows";
import { above } from "./spans";
import { traces } from "./random_traces";

const foldings: fc.Arbitrary<Folding> = fc.record({
  level: fc.option(fc.nat(6)),
  turned: fc.uniqueArray(
    fc.nat(39).map((i) => i.toString(16).padStart(16, "0")),
    { maxLength: 8 },
  ),
});

test("a row is there exactly when nothing above it is closed", () => {
  fc.assert(
    fc.property(traces, foldings, (spans, folding) => {
      const closed = closedOf(spans, folding);
      const wanted = Array.from({ length: spans.count }, (_, i) => i).filter((i) =>
        above(spans, i).every((each) => !closed[each]),
      );
      expect([...rowsOf(spans, closed, null)]).toEqual(wanted);
    }),
  );
});

test("all open is all rows, all shut the roots", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      expect(rowsOf(spans, closedOf(spans, OPEN), null).length).toBe(spans.count);
      const roots = rowsOf(spans, closedOf(spans, SHUT), null);
      expect([...roots].every((place) => spans.parent[place] === -1)).toBe(true);
    }),
  );
});

test("what was revealed is a row, and what was open stays open", () => {
  fc.assert(
    fc.property(traces, foldings, fc.nat(), (spans, folding, number) => {
      const place = number % spans.count;
      const before = closedOf(spans, folding);
      const after = closedOf(spans, reveal(spans, folding, place));
      expect([...rowsOf(spans, after, null)]).toContain(place);
      expect(after.some((closed, i) => closed && !before[i])).toBe(false);
    }),
  );
});

test("turned twice is as it was", () => {
  fc.assert(
    fc.property(traces, foldings, fc.nat(), (spans, folding, number) => {
      const id = spans.ids[number % spans.count]!;
      const twice = turn(turn(folding, id), id);
      expect(closedOf(spans, twice)).toEqual(closedOf(spans, folding));
    }),
  );
});

test("level by level all can be opened, and shut", () => {
  fc.assert(
    fc.property(traces, (spans) => {
      let folding = SHUT;
      for (let i = 0; i < spans.deepest; i++) folding = deeper(spans, folding, 1);
      expect(folding).toEqual(spans.deepest ? OPEN : SHUT);
      for (let i = 0; i < spans.deepest; i++) folding = deeper(spans, folding, -1);
      expect(folding).toEqual(SHUT);
    }),
  );
});

test("only what is kept is a row, and with all above it", () => {
  fc.assert(
    fc.property(traces, fc.array(fc.nat(39)), (spans, marked) => {
      const marks = new Uint8Array(spans.count);
      for (const place of marked) if (place < spans.count) marks[place] = 1;
      const kept = withAbove(spans, marks);
      const rows = [...rowsOf(spans, closedOf(spans, SHUT), kept)];
      for (const place of rows) {
        const parent = spans.parent[place]!;
        if (parent >= 0) expect(rows).toContain(parent);
        const below = marks.subarray(place, spans.behind[place]);
        expect(below.includes(1)).toBe(true);
      }
    }),
  );
});

test("a hidden span has the row of the closed one above it", () => {
  fc.assert(
    fc.property(traces, foldings, (spans, folding) => {
      const closed = closedOf(spans, folding);
      const rows = rowsOf(spans, closed, null);
      for (let i = 0; i < spans.count; i++) {
        const shown = rows[rowOf(rows, i)]!;
        expect(shown === i || above(spans, i).includes(shown)).toBe(true);
      }
    }),
  );
});

test("next and previous go through all marks, around the end", () => {
  const marks = Uint8Array.of(0, 1, 0, 0, 1, 1);
  const walk = (by: 1 | -1, from: number) => {
    const seen = [];
    for (let at = from, i = 0; i < 4; i++) seen.push((at = nextMarked(marks, at, by)));
    return seen;
  };
  expect(walk(1, -1)).toEqual([1, 4, 5, 1]);
  expect(walk(-1, 2)).toEqual([1, 5, 4, 1]);
  expect(nextMarked(new Uint8Array(3), 0, 1)).toBe(-1);
});
