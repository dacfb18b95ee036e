import { expect, test } from "vitest";

import { columnOf, shortName } from "./field_names";

test("what the box calls otherwise is that column, of the table that has it", () => {
  expect(columnOf("logs", "level")).toBe("severity");
  expect(columnOf("spans", "status")).toBe("status_code");
  const own = ["status", "http.route", "constructor", "__proto__"];
  expect(own.map((name) => columnOf("logs", name))).toEqual(own);
});

test("a short name is without what tells it apart", () => {
  expect(shortName("resource.host.name")).toBe("host.name");
  expect(shortName("attribute.level")).toBe("level");
  expect(shortName("scope.build")).toBe("scope.build");
});
