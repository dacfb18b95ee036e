import fc from "fast-check";
import { expect, test } from "vitest";

import {
  countMatches,
  filtersOf,
  localMatches,
  addMatches,
  needsNode,
  formatTerm,
  parseFindQuery,
} from "./find";
import { toSpans } from "./spans";
import { outlineOf, traces } from "./random_traces";

const keys = fc.stringMatching(/^[a-z][a-z._-]{0,12}$/);
const values = fc.string({ unit: "binary", minLength: 1 });

test("a formatted pair parses back, whatever its value", () => {
  fc.assert(
    fc.property(keys, values, (key, value) => {
      expect(parseFindQuery(formatTerm(key, value))).toEqual({ text: "", pairs: [[key, value]] });
    }),
  );
});

test("pairs may stand between words", () => {
  expect(parseFindQuery('no money order.id=17 service:"my shop" here')).toEqual({
    text: "no money here",
    pairs: [
      ["order.id", "17"],
      ["service", "my shop"],
    ],
  });
  expect(parseFindQuery("http://shop/cart")).toEqual({ text: "http://shop/cart", pairs: [] });
  expect(parseFindQuery('"a=b c"')).toEqual({ text: "a=b c", pairs: [] });
  expect(parseFindQuery("order.id=")).toEqual({ text: "", pairs: [] });
});

test("any text parses", () => {
  fc.assert(
    fc.property(traces, fc.string({ unit: "binary" }), (spans, q) => {
      expect(countMatches(localMatches(spans, parseFindQuery(q)))).toBeLessThanOrEqual(spans.count);
    }),
  );
});

test("text matches services and operations, ignoring case", () => {
  const spans = toSpans(outlineOf([{ service: 0, name: 0 }, { service: 1, name: 2 }, { name: 2 }]));
  const found = (q: string) => [...localMatches(spans, parseFindQuery(q))];
  expect(found("select")).toEqual([0, 1, 1]);
  expect(found("BANK")).toEqual([0, 1, 0]);
  expect(found("service=shop select")).toEqual([0, 0, 1]);
  expect(found('operation="SELECT orders"')).toEqual([0, 1, 1]);
  expect(found("")).toEqual([0, 0, 0]);
});

test("the node is asked only for what is unknown locally", () => {
  expect(needsNode(parseFindQuery("service=shop operation=pay"))).toBe(false);
  expect(needsNode(parseFindQuery("pay"))).toBe(true);
  expect(needsNode(parseFindQuery("order.id=7"))).toBe(true);
  expect(filtersOf(parseFindQuery("status=error service=shop a=b"))).toEqual([
    "status_code=ERROR",
    "service_name=shop",
    "a=b",
  ]);
});

test("the node's matches are added, and unknown spans ignored", () => {
  const spans = toSpans(outlineOf([{}, { service: 1 }]));
  const here = localMatches(spans, parseFindQuery("bank"));
  expect([...addMatches(spans, here, [spans.ids[0]!, "f".repeat(16)])]).toEqual([1, 1]);
});
