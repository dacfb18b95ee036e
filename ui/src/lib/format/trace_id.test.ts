import { expect, test } from "vitest";

import { traceIdIn } from "./trace_id";

const ID = "0af7651916cd43dd8448eb211c80319c";

test.each([
  [ID, ID],
  [` ${ID.toUpperCase()}\n`, ID],
  [`00-${ID}-b7ad6b7169203331-01`, ID],
  ["0af76519-16cd-43dd-8448-eb211c80319c", ID],
  [`trace_id:${ID}`, ID],
  [`"${ID}"`, ID],
  ["0af765", "0af765"],
  ["facade", null],
  ["0af7", null],
  ["checkout", null],
  ["2026 errors", null],
  [`${ID}0`, null],
])("%s", (typed, id) => {
  expect(traceIdIn(typed)).toBe(id);
});
