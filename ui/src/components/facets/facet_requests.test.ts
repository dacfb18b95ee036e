import { expect, test } from "vitest";

import { type FacetCounts, type Limit, facetRequests, mergeCounts } from "./facet_requests";

const few = (): Limit => 8;
const nothing = { query: "", filter: [], exclude: [] };

test("without filters there is one request", () => {
  const chosen = { q: "", is: [], not: [] };
  expect(facetRequests({}, chosen, ["a", "b"], few)).toEqual([
    { ...nothing, name: ["a", "b"], limit: 8 },
  ]);
  expect(facetRequests({}, chosen, [], few)).toEqual([]);
});

test("a facet is counted without its own include filters", () => {
  const is = ["kind=SERVER", "kind=CLIENT", "name=GET /"];
  const chosen = { q: "timeout -db:*", is, not: ["kind=INTERNAL"] };
  const asked = { errors: true, query: "timeout -db:*", filter: is, exclude: ["kind=INTERNAL"] };
  expect(facetRequests({ errors: true }, chosen, ["kind", "http.route", "db"], few)).toEqual([
    { ...asked, name: ["http.route"], limit: 8 },
    { ...asked, filter: ["name=GET /"], name: ["kind"], limit: 8 },
    { ...asked, query: "timeout", name: ["db"], limit: 8 },
  ]);
});

test("only facets with a larger limit request more", () => {
  const limitOf = (name: string): Limit => (name === "b" ? 100 : 8);
  const chosen = { q: "", is: ["c=1"], not: [] };
  expect(facetRequests({}, chosen, ["a", "b", "c"], limitOf)).toEqual([
    { ...nothing, filter: ["c=1"], name: ["a"], limit: 8 },
    { ...nothing, filter: ["c=1"], name: ["b"], limit: 100 },
    { ...nothing, name: ["c"], limit: 8 },
  ]);
});

test("each facet has the total of its response", () => {
  const a = { name: "a", values: [] };
  const answers = [
    { total: 5, facets: [a] },
    { total: 7, facets: [{ ...a, name: "b" }] },
  ];
  const found = mergeCounts(answers, { q: "", is: [], not: [] });
  expect([...found.values()].map(({ name, total }) => [name, total])).toEqual([
    ["a", 5],
    ["b", 7],
  ]);
});

test("an excluded value keeps its position", () => {
  const answer = (...values: [string, number][]) => [{ total: 9, facets: [{ name: "a", values }] }];
  const shown = (counted: FacetCounts) => counted.get("a")?.values.map(([value]) => value);
  const before = mergeCounts(answer(["x", 4], ["y", 3], ["z", 2]), { q: "", is: [], not: [] });
  const one = mergeCounts(answer(["x", 4], ["z", 2]), { q: "", is: [], not: ["a=y"] }, before);
  expect(shown(one)).toEqual(["x", "y", "z"]);
  const two = mergeCounts(answer(["z", 2]), { q: "", is: [], not: ["a=y", "a=x", "a=w"] }, one);
  expect(shown(two)).toEqual(["x", "y", "z", "w"]);
});
