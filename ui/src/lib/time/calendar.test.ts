import { expect, test } from "vitest";

import { addDays, addMonths, monthName, weeksOf } from "./calendar";

test("days and months are added across their ends", () => {
  expect(addDays("2026-12-31", 1)).toBe("2027-01-01");
  expect(addMonths("2026-01-31", 1)).toBe("2026-02-28");
  expect(addMonths("2026-01-15", -1)).toBe("2025-12-15");
  expect(monthName("2026-11-16")).toBe("November 2026");
});

test("a month has whole weeks from Monday", () => {
  const weeks = weeksOf("2026-11-16");
  expect(weeks[0]![0]).toBe("2026-10-26");
  expect(weeks.at(-1)!.at(-1)).toBe("2026-12-06");
  expect(weeksOf("2027-02-10")).toHaveLength(4);
  expect(weeksOf("2026-11-16").flat()).toContain("2026-11-30");
});
