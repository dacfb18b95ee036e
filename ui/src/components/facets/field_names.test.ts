import { expect, test } from "vitest";

import { columnOf, shortName } from "./field_names";

test("aliases of the search box map to columns", () => {
  expect(columnOf("logs", "level")).toBe("severity");
  expect(columnOf("spans", "status")).toBe("status_code");
  const own = ["status", "http.route", "constructor", "__proto__"];
  expect(own.map((name) => columnOf("logs", name))).toEqual(own);
});

test("a short name has no prefix", () => {
  expect(shortName("resource.host.name")).toBe("host.name");
  expect(shortName("attribute.level")).toBe("level");
  expect(shortName("scope.build")).toBe("scope.build");
});
