import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  type DashboardModel,
  parseDashboard,
  type PanelModel,
  type VariableModel,
  toFile,
  unusedId,
  KINDS,
  LOOKS,
  REDUCES,
  SOURCES,
  toFileText,
} from "./dashboard";
import { unusedName } from "../../../lib/saved/file_name";
import { TEMPLATES } from "./templates";

const words = fc.string({ maxLength: 12, unit: "binary" });
const list = fc.array(words, { maxLength: 3 });
const metric = fc.record({
  name: words,
  type: words,
  aggregates: fc.array(words, { minLength: 1, maxLength: 3 }),
  by: list,
  filter: list,
  exclude: list,
  step: words,
});
const logs = fc.record({ search: words, severity: words, filter: list, exclude: list });
const panel: fc.Arbitrary<PanelModel> = fc
  .record({
    id: fc.stringMatching(/^[a-z0-9]{1,16}$/),
    title: words,
    kind: fc.constantFrom(...KINDS),
    x: fc.nat(11),
    y: fc.nat(50),
    w: fc.integer({ min: 1, max: 12 }),
    h: fc.integer({ min: 1, max: 60 }),
    metric: fc.option(metric),
    sql: words,
    logs: fc.option(logs),
    unit: words,
    look: fc.constantFrom(...LOOKS),
    reduce: fc.constantFrom(...REDUCES),
    limit: fc.integer({ min: 1, max: 1000 }),
  })
  .map((each) => ({ ...each, w: Math.min(each.w, 12 - each.x) }));
const variable: fc.Arbitrary<VariableModel> = fc.record({
  name: fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/),
  label: words,
  kind: fc.constantFrom(...SOURCES),
  metric: words,
  of: words,
  sql: words,
  values: list,
  many: fc.boolean(),
  chosen: list,
});
const dash: fc.Arbitrary<DashboardModel> = fc.record({
  title: words,
  description: words,
  variables: fc.uniqueArray(variable, { maxLength: 3, selector: (each) => each.name }),
  panels: fc.uniqueArray(panel, { maxLength: 4, selector: (each) => each.id }),
});

describe("a dashboard", () => {
  it("survives its file", () => {
    fc.assert(
      fc.property(dash, (made) => {
        expect(parseDashboard(toFile(made))).toEqual(made);
        const text = toFileText(made);
        expect(toFileText(parseDashboard(JSON.parse(text)))).toBe(text);
      }),
    );
  });

  it("parses, or throws a readable error", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (given) => {
        try {
          parseDashboard(given);
        } catch (error) {
          expect((error as Error).message).toMatch(/\.$/);
        }
      }),
    );
  });

  it.each([
    [{ format: 2, title: "" }, "format"],
    [{ format: 1 }, "title"],
    [{ format: 1, title: "", panles: [] }, "panles"],
    [{ format: 1, title: "", panels: [{ id: "a", kind: "pie", x: 0, y: 0, w: 1, h: 1 }] }, "kind"],
    [{ format: 1, title: "", panels: [{ id: "a", kind: "top", x: 9, y: 0, w: 6, h: 1 }] }, "x"],
    [{ format: 1, title: "", variables: [{ name: "A", kind: "list" }] }, "A"],
  ])("says what is wrong: %j", (given, why) => {
    expect(() => parseDashboard(given)).toThrow(why);
  });

  it("leaves out defaults", () => {
    expect(toFileText({ title: "x", description: "", variables: [], panels: [] })).toBe(
      '{\n  "format": 1,\n  "title": "x"\n}\n',
    );
  });

  it.each(TEMPLATES.map((starter) => [starter.title, starter.dash] as const))(
    "begins with one that is whole: %s",
    (_, starter) => {
      expect(parseDashboard(toFile(starter))).toEqual(starter);
    },
  );
});

describe("names", () => {
  it("are unused and valid file names", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string()), (title, taken) => {
        const name = unusedName(title, taken, "dashboard");
        expect(name).toMatch(/^[a-z0-9][a-z0-9_-]{0,63}$/);
        expect(taken).not.toContain(name);
      }),
    );
    expect(unusedName("Über uns: 2", [], "view")).toBe("u-ber-uns-2");
    expect(unusedName("Shop", ["shop", "shop-2"], "view")).toBe("shop-3");
    expect(unusedId([{ id: "p2" }])).toBe("p3");
  });
});
