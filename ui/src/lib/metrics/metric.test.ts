import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";

import type { SeriesAnswer } from "../api/types.gen";
import {
  aggregatesOf,
  toChartData,
  gridOf,
  isQuantile,
  type MetricQuery,
  metricParams,
  QUANTILES,
  servicesOf,
  summarize,
  toggleAggregate,
  medianIntervalS,
  unitOf,
  defaultAggregates,
} from "./metric";

// Preferences need a browser.
vi.mock("../state/prefs.svelte", () => ({ prefs: { isUtc: true } }));

const KINDS = [
  { type: "gauge" },
  { type: "sum", is_monotonic: true },
  { type: "sum", is_monotonic: false },
  { type: "histogram" },
  { type: "exponential_histogram" },
  { type: "summary" },
];
const ASKED: MetricQuery = {
  name: "m",
  type: "gauge",
  aggregates: ["avg"],
  by: [],
  filter: [],
  exclude: [],
  step: "",
};
const answer = (values: [number, number][], labels = {}): SeriesAnswer => ({
  metric_type: "gauge",
  unit: null,
  is_cut: false,
  series: [
    {
      labels,
      values: values.map(([s, value]) => [new Date(s * 1000).toISOString(), value]),
    },
  ],
});

describe("aggregates of a metric", () => {
  it.each(KINDS)("is known for $type, $is_monotonic", (kind) => {
    const usual = defaultAggregates(kind);
    expect(usual.length).toBeGreaterThan(0);
    for (const each of usual) expect(aggregatesOf(kind)).toContain(each);
    expect(new Set(aggregatesOf(kind)).size).toBe(aggregatesOf(kind).length);
  });

  it("offers rates only for counters", () => {
    expect(aggregatesOf({ type: "sum", is_monotonic: true })).toContain("rate");
    expect(aggregatesOf({ type: "sum", is_monotonic: false })).not.toContain("rate");
    expect(aggregatesOf({ type: "gauge" })).not.toContain("rate");
  });

  it("is one aggregate or several quantiles, never none", () => {
    const any = fc.constantFrom(...QUANTILES, "avg", "rate");
    fc.assert(
      fc.property(fc.array(any), any, (pressed, last) => {
        const chosen = [...pressed, last].reduce<readonly string[]>(toggleAggregate, ["avg"]);
        expect(chosen.length).toBeGreaterThan(0);
        expect(chosen.length === 1 || chosen.every(isQuantile)).toBe(true);
        expect(new Set(chosen).size).toBe(chosen.length);
      }),
    );
  });

  it("sends other quantiles as a number", () => {
    const range = { sinceMs: 0, untilMs: 1000 };
    expect(metricParams(ASKED, "p99", range, 1).aggregate).toBe("p99");
    const rare = metricParams(ASKED, "p99.9", range, 1);
    expect(rare).toMatchObject({ aggregate: "quantile" });
    expect("quantile" in rare && rare.quantile).toBeCloseTo(0.999);
  });

  it("has a unit per aggregate", () => {
    expect(unitOf("sum", "By", "rate")).toBe("By/s");
    expect(unitOf("histogram", "s", "rate")).toBe("1/s");
    expect(unitOf("histogram", "s", "p99")).toBe("s");
    expect(unitOf("gauge", "By", "count")).toBe("1");
  });
});

describe("a response as lines", () => {
  it("has an entry for each step", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1e12 }),
        fc.integer({ min: 1, max: 1e7 }),
        fc.integer({ min: 1, max: 600 }),
        (sinceMs, length, stepS) => {
          const grid = gridOf({ sinceMs, untilMs: sinceMs + length }, stepS);
          expect(grid[0]).toBeLessThanOrEqual(sinceMs);
          expect(grid.at(-1)).toBeLessThan(sinceMs + length);
          expect((grid.at(-1) ?? 0) + stepS * 1000).toBeGreaterThanOrEqual(sinceMs + length);
          expect(grid.every((ms) => ms % (stepS * 1000) === 0)).toBe(true);
        },
      ),
    );
  });

  it("connects short gaps and breaks at long ones", () => {
    const got = toChartData(
      ASKED,
      [
        answer([
          [0, 1],
          [20, 2],
          [90, 3],
        ]),
      ],
      { sinceMs: 0, untilMs: 100_000 },
      10,
    );
    expect(got.lines[0]?.values).toEqual([1, undefined, 2, ...Array(6).fill(null), 3]);
  });

  it("names its lines by labels and aggregate", () => {
    const name = (change: Partial<MetricQuery>, labels: Record<string, string | null>) =>
      toChartData(
        { ...ASKED, ...change },
        [answer([[0, 1]], labels)],
        { sinceMs: 0, untilMs: 1 },
        10,
      ).lines[0]?.name;
    expect(name({}, {})).toBe("avg of m");
    expect(name({ by: ["a"] }, { a: "x" })).toBe("x");
    expect(name({ by: ["a", "b"] }, { a: "x", b: null })).toBe("x, (none)");
    expect(name({ aggregates: ["p50", "p99"], by: ["a"] }, { a: "x" })).toBe("p50 x");
  });

  it("finds the median interval", () => {
    const { series } = answer([
      [0, 1],
      [60, 1],
      [120, 1],
      [125, 1],
      [185, 1],
    ]);
    expect(medianIntervalS(series)).toBe(60);
    expect(medianIntervalS(answer([[0, 1]]).series)).toBeNull();
  });

  it("is summarized without its gaps", () => {
    expect(summarize([null, 1, undefined, 3, null])).toEqual({ last: 3, min: 1, max: 3, avg: 2 });
    expect(summarize([null]).last).toBeNull();
  });
});

describe("services of lines", () => {
  const line = (labels: Record<string, string | null>) => ({
    name: "a line",
    labels,
    aggregate: "rate",
    values: [],
  });

  it("are known if each line is exactly one service", () => {
    const both = [line({ service_name: "cart" }), line({ service_name: "mailer" })];
    expect(servicesOf(both)).toEqual(["cart", "mailer"]);
  });

  it.each([
    ["no lines", []],
    ["no labels", [line({})]],
    ["another label", [line({ host: "a" })]],
    ["one more label", [line({ service_name: "cart", host: "a" })]],
    ["nobody's", [line({ service_name: "cart" }), line({ service_name: null })]],
    ["two lines of one", [line({ service_name: "cart" }), line({ service_name: "cart" })]],
  ])("are not known of %s", (_, lines) => {
    expect(servicesOf(lines)).toBeNull();
  });
});
