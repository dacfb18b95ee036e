import fc from "fast-check";
import { expect, test } from "vitest";

import type { Dependency } from "../../lib/api/types.gen";
import { fitted, graphOf, tracesOf, widthOf, zoomed } from "./graph";
import { curveOf, layout, NODE } from "./map_layout";

function call(caller: string, callee: string, call_count = 1, is_linked = false): Dependency {
  return { caller, callee, is_linked, call_count, error_count: 0, p95_nano: 1, p99_nano: 1 };
}

// Including names that are special to objects or separators.
const names = fc.constantFrom("web", "cart", "__proto__", "constructor", "a\x01b", "", "b\0");

test("every service and call is drawn, whatever its name", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(names, names), { selector: String }), (pairs) => {
      const calls = pairs.map(([one, other]) => call(one, other));
      const graph = graphOf([], calls);
      const drawing = layout(graph);
      expect(new Set(graph.services.map((each) => each.name))).toEqual(new Set(pairs.flat()));
      expect(drawing.calls.length).toBe(pairs.length);
      for (const { x, y } of drawing.services) {
        expect(x).toBeGreaterThanOrEqual(NODE.width / 2);
        expect(x).toBeLessThanOrEqual(drawing.width - NODE.width / 2);
        expect(y).toBeLessThanOrEqual(drawing.height - NODE.height / 2);
      }
      for (const { path } of drawing.calls) expect(path).toMatch(/^M-?[\d.]+,/);
    }),
    { numRuns: 30 },
  );
});

test("a call and a message between the same services are two edges", () => {
  const graph = graphOf([], [call("shop", "mailer"), call("shop", "mailer", 2, true)]);
  const paths = layout(graph).calls.map(({ path }) => path);
  expect(new Set(paths).size).toBe(2);
});

test("messages link to the consumer's traces", () => {
  expect(tracesOf(call("shop", "mailer"))).toEqual({ through: ["shop", "mailer"] });
  expect(tracesOf(call("shop", "mailer", 1, true))).toEqual({ is: ["service_name=mailer"] });
});

test("services without calls are listed, services without spans are not", () => {
  const last_seen = "2026-01-01T00:00:00Z";
  const graph = graphOf(
    [
      { name: "batch", last_seen, span_count: 3 },
      { name: "host", last_seen, point_count: 9 },
    ],
    [],
  );
  expect(graph.services.map((each) => each.name)).toEqual(["batch"]);
  expect(layout(graphOf([], []))).toMatchObject({ services: [], calls: [] });
});

test("only the most frequent calls are drawn", () => {
  const calls = Array.from({ length: 300 }, (_, i) => call("web", `s${i}`, i));
  const graph = graphOf([], calls);
  expect(graph.leftOut).toBe(100);
  expect(Math.min(...graph.calls.map((each) => each.call.call_count))).toBe(100);
  expect(widthOf(299, 299)).toBe(6);
  expect(widthOf(0, 299)).toBe(1);
});

test("zooming keeps the point under the pointer", () => {
  const view = fitted({ width: 1000, height: 500 }, { width: 500, height: 540, top: 40 });
  expect(view).toEqual({ x: 0, y: 165, zoom: 0.5 });
  const at = { x: 100, y: 200 };
  const after = zoomed(view, 1.5, at);
  const before = { x: (at.x - view.x) / view.zoom, y: (at.y - view.y) / view.zoom };
  expect((at.x - after.x) / after.zoom).toBeCloseTo(before.x);
  expect((at.y - after.y) / after.zoom).toBeCloseTo(before.y);
  expect(zoomed(view, 1e9, at).zoom).toBe(3);
});

test("an empty line has no path", () => {
  expect(curveOf([])).toBe("");
  expect(curveOf([{ x: 1, y: 2 }])).toBe("");
  expect(curveOf([0, 1, 2].map((x) => ({ x, y: 0 })))).toBe("M0,0Q1,0 1.5,0L2,0");
});
