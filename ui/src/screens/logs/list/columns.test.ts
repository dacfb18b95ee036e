import fc from "fast-check";
import { describe, expect, test } from "vitest";

import {
  bounded,
  COLUMNS,
  columnsField,
  moveColumn,
  resizeColumn,
  toggleColumn,
  valueOf,
} from "./columns";
import type { LogRecord } from "./records";

const columns = fc.uniqueArray(
  fc.record({ name: fc.string({ minLength: 1 }), width: fc.integer({ min: 40, max: 800 }) }),
  { selector: ({ name }) => name },
);

test("columns survive the address", () => {
  fc.assert(
    fc.property(columns, (given) => {
      const written = columnsField.write(given);
      expect(columnsField.read(written.length ? written : [""])).toEqual(given);
    }),
  );
  expect(columnsField.read([])).toBe(COLUMNS);
  expect(columnsField.read(["x", "12", "9999:wide"])).toEqual([{ name: "wide", width: 800 }]);
});

test("toggling or moving a column twice restores it", () => {
  fc.assert(
    fc.property(columns, fc.string({ minLength: 1 }), (given, name) => {
      const others = given.filter((each) => each.name !== name);
      expect(toggleColumn(toggleColumn(others, name), name)).toEqual(others);
      const there = [...others, { name, width: 50 }];
      expect(moveColumn(moveColumn(there, name, -1), name, 1)).toEqual(there);
      expect(resizeColumn(there, name, 7).at(-1)).toEqual({ name, width: bounded(7) });
    }),
  );
});

describe("valueOf", () => {
  const row = {
    service_name: "cart",
    event_name: null,
    attributes: { "http.route": "/cart", route: "own", __proto__x: "y" },
    resource_attributes: { "host.name": "node-a", "deployment.environment": "demo" },
    scope_attributes: { build: "7" },
  } as unknown as LogRecord;

  test.each([
    ["service_name", "cart"],
    ["event_name", null],
    ["http.route", "/cart"],
    ["attribute.route", "own"],
    ["resource.host.name", "node-a"],
    ["host_name", "node-a"],
    ["deployment_environment", "demo"],
    ["scope.build", "7"],
    ["constructor", null],
    ["attribute.toString", null],
  ])("%s", (name, value) => {
    expect(valueOf(row, name)).toBe(value);
  });
});
