import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  appendItem,
  COLUMNS,
  HEIGHT_MAX,
  readingOrder,
  moveItem,
  nudgeItem,
  overlap,
  pack,
  type GridItem,
  resizeItem,
} from "./grid";

const wild = fc.integer({ min: -5, max: 30 });
const panels = fc
  .array(fc.record({ x: wild, y: wild, w: wild, h: wild }), { maxLength: 12 })
  .map((all) => all.map((each, i): GridItem => ({ ...each, id: `p${i}` })));

/** Panels that break the rules of the grid. */
function wrong(placed: readonly GridItem[]): GridItem[] {
  return placed.filter((one) => {
    const others = placed.filter((other) => other !== one);
    const isInside = one.x >= 0 && one.y >= 0 && one.w >= 1 && one.h >= 1 && one.h <= HEIGHT_MAX;
    // A panel stands at the top or on another panel.
    const stands = one.y === 0 || others.some((other) => overlap({ ...one, y: one.y - 1 }, other));
    const isAlone = !others.some((other) => overlap(one, other));
    return !(isInside && one.x + one.w <= COLUMNS && stands && isAlone);
  });
}

function check(placed: readonly GridItem[], before: readonly GridItem[]) {
  expect(wrong(placed)).toEqual([]);
  expect(placed.map((panel) => panel.id)).toEqual(before.map((panel) => panel.id));
}

describe("the grid", () => {
  it("never overlaps panels, whatever a file contains", () => {
    fc.assert(fc.property(panels, (all) => check(pack(all), all)));
  });

  it("packing is idempotent", () => {
    fc.assert(
      fc.property(panels, (all) => {
        const once = pack(all);
        expect(pack(once)).toEqual(once);
      }),
    );
  });

  it("makes room for moved and resized panels, and keeps sizes", () => {
    const any = fc.nat(11);
    fc.assert(
      fc.property(panels, any, wild, wild, (all, which, a, b) => {
        const before = pack(all);
        const id = `p${which}`;
        check(moveItem(before, id, a, b), before);
        check(resizeItem(before, id, a, b), before);
        check(nudgeItem(before, id, Math.sign(a), 0), before);
        check(nudgeItem(before, id, 0, Math.sign(b)), before);
        const sizes = (list: readonly GridItem[]) => list.map(({ w, h }) => [w, h]);
        expect(sizes(moveItem(before, id, a, b))).toEqual(sizes(before));
      }),
    );
  });

  it("puts a new panel below all others", () => {
    const before = pack([{ id: "a", x: 0, y: 0, w: 12, h: 4 }]);
    const after = appendItem(before, { id: "b", x: 3, y: 0, w: 6, h: 2 });
    expect(after.at(-1)).toMatchObject({ id: "b", x: 0, y: 4 });
  });

  it("arrow keys swap panels and back", () => {
    const before = pack([
      { id: "a", x: 0, y: 0, w: 6, h: 4 },
      { id: "b", x: 0, y: 4, w: 6, h: 8 },
    ]);
    const down = nudgeItem(before, "a", 0, 1);
    expect(readingOrder(down).map((panel) => panel.id)).toEqual(["b", "a"]);
    expect(readingOrder(nudgeItem(down, "a", 0, -1)).map((panel) => panel.id)).toEqual(["a", "b"]);
    expect(nudgeItem(before, "a", 0, -1)).toEqual(before);
  });
});
