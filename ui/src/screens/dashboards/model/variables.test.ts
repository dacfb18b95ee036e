import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";

import { variableOf } from "./dashboard";
import { chosenOf, inPairs, inSql, inWords, pairsWith } from "./variables";

vi.mock("../../../lib/state/prefs.svelte", () => ({ prefs: { isUtc: true } }));

const HOUR = { sinceMs: 0, untilMs: 3_600_000 };
const SERVICE = { ...variableOf("service"), chosen: ["cart"] };

describe("what is chosen", () => {
  it("is what the address says, or else the file", () => {
    expect(chosenOf([SERVICE], [])).toEqual({ service: ["cart"] });
    expect(chosenOf([SERVICE], ["service=a=b", "service=c", "other=d"])).toEqual({
      service: ["a=b", "c"],
    });
    expect(chosenOf([SERVICE], ["service="])).toEqual({ service: [] });
    expect(chosenOf([{ ...SERVICE, many: false }], ["service=a", "service=b"])).toEqual({
      service: ["a"],
    });
  });

  it("comes back from the address as it was written", () => {
    const values = fc.array(fc.string({ minLength: 1 }));
    fc.assert(
      fc.property(values, values, (before, after) => {
        const pairs = pairsWith(pairsWith(["x=1"], "service", before), "service", after);
        expect(chosenOf([SERVICE], pairs)).toEqual({ service: after });
        expect(pairs).toContain("x=1");
      }),
    );
  });
});

describe("a variable stands for its values", () => {
  it("in filters, one each; all of them is no filter", () => {
    const pairs = ["service_name=$service", "a=b"];
    expect(inPairs(pairs, { service: ["x", "y"] })).toEqual([
      "service_name=x",
      "service_name=y",
      "a=b",
    ]);
    expect(inPairs(pairs, { service: [] })).toEqual(["a=b"]);
    expect(inPairs(["a=$other"], { service: [] })).toEqual(["a=$other"]);
  });

  it("in SQL, quoted; all is each that is known", () => {
    const sql = "x IN ($service) AND t >= $from AND t < $to AND n = $step AND y = $unknown";
    expect(inSql(sql, { service: ["it's", "b"] }, {}, HOUR, 30)).toBe(
      "x IN ('it''s', 'b') AND t >= '1970-01-01T00:00:00.000Z' AND t < '1970-01-01T01:00:00.000Z'" +
        " AND n = 30 AND y = $unknown",
    );
    expect(inSql("${service}s", { service: [] }, { service: ["a"] }, HOUR, 1)).toBe("'a's");
    expect(inSql("$service", { service: [] }, {}, HOUR, 1)).toBe("NULL");
  });

  it("never ends its quotes, and is not read again", () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const text = inSql("$v", { v: [value] }, {}, HOUR, 1);
        expect(text.slice(1, -1).replaceAll("''", "")).not.toContain("'");
        expect(text.slice(1, -1).replaceAll("''", "'")).toBe(value);
      }),
    );
  });

  it("in titles, as words; names of objects are none", () => {
    expect(inWords("$service: ${service}", { service: [] })).toBe("all: all");
    expect(inWords("$constructor $toString", {})).toBe("$constructor $toString");
  });
});
