import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";

import { newVariable } from "./dashboard";
import {
  selectedValues,
  substitutePairs,
  substituteSql,
  substituteText,
  pairsWith,
} from "./variables";

vi.mock("../../../lib/state/prefs.svelte", () => ({ prefs: { isUtc: true } }));

const HOUR = { sinceMs: 0, untilMs: 3_600_000 };
const SERVICE = { ...newVariable("service"), chosen: ["cart"] };

describe("selected values", () => {
  it("come from the address, or from the file", () => {
    expect(selectedValues([SERVICE], [])).toEqual({ service: ["cart"] });
    expect(selectedValues([SERVICE], ["service=a=b", "service=c", "other=d"])).toEqual({
      service: ["a=b", "c"],
    });
    expect(selectedValues([SERVICE], ["service="])).toEqual({ service: [] });
    expect(selectedValues([{ ...SERVICE, many: false }], ["service=a", "service=b"])).toEqual({
      service: ["a"],
    });
  });

  it("survives the address", () => {
    const values = fc.array(fc.string({ minLength: 1 }));
    fc.assert(
      fc.property(values, values, (before, after) => {
        const pairs = pairsWith(pairsWith(["x=1"], "service", before), "service", after);
        expect(selectedValues([SERVICE], pairs)).toEqual({ service: after });
        expect(pairs).toContain("x=1");
      }),
    );
  });
});

describe("variable substitution", () => {
  it("in filters, one per value; all means no filter", () => {
    const pairs = ["service_name=$service", "a=b"];
    expect(substitutePairs(pairs, { service: ["x", "y"] })).toEqual([
      "service_name=x",
      "service_name=y",
      "a=b",
    ]);
    expect(substitutePairs(pairs, { service: [] })).toEqual(["a=b"]);
    expect(substitutePairs(["a=$other"], { service: [] })).toEqual(["a=$other"]);
  });

  it("in SQL, quoted; all means every known value", () => {
    const sql = "x IN ($service) AND t >= $from AND t < $to AND n = $step AND y = $unknown";
    expect(substituteSql(sql, { service: ["it's", "b"] }, {}, HOUR, 30)).toBe(
      "x IN ('it''s', 'b') AND t >= '1970-01-01T00:00:00.000Z' AND t < '1970-01-01T01:00:00.000Z'" +
        " AND n = 30 AND y = $unknown",
    );
    expect(substituteSql("${service}s", { service: [] }, { service: ["a"] }, HOUR, 1)).toBe("'a's");
    expect(substituteSql("$service", { service: [] }, {}, HOUR, 1)).toBe("NULL");
  });

  it("stays inside its quotes and is substituted once", () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const text = substituteSql("$v", { v: [value] }, {}, HOUR, 1);
        expect(text.slice(1, -1).replaceAll("''", "")).not.toContain("'");
        expect(text.slice(1, -1).replaceAll("''", "'")).toBe(value);
      }),
    );
  });

  it("in titles, as words; inherited names are no variables", () => {
    expect(substituteText("$service: ${service}", { service: [] })).toBe("all: all");
    expect(substituteText("$constructor $toString", {})).toBe("$constructor $toString");
  });
});
