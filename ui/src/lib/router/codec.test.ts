import fc from "fast-check";
import { expect, test } from "vitest";

import { parseAddress, SCREENS, formatAddress } from "./address";
import { choice, codec, distinct, flag, number, text, texts } from "./codec";

const fields = codec({
  q: text(),
  sort: text("time"),
  mode: choice(["table", "chart"], "table"),
  isOpen: flag(),
  isWrapped: flag(true),
  min: number(),
  limit: number(100),
  columns: texts(["time", "body"]),
  filters: texts(),
});

const states = fc.record({
  q: fc.string({ unit: "binary" }),
  sort: fc.string(),
  mode: fc.constantFrom("table" as const, "chart" as const),
  isOpen: fc.boolean(),
  isWrapped: fc.boolean(),
  min: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)),
  limit: fc.option(fc.integer()),
  columns: fc.array(fc.string({ minLength: 1 })),
  filters: fc.array(fc.string({ minLength: 1 })),
});

test("a state survives the address", () => {
  fc.assert(
    fc.property(
      states,
      fc.constantFrom(...SCREENS),
      fc.string({ minLength: 1 }),
      (state, screen, id) => {
        const isAbout = ["trace", "dashboard", "topic", "table", "view"].includes(screen);
        // An address cannot contain a lone surrogate, nor `.` and `..` as path segments.
        fc.pre(id.isWellFormed() && state.q.isWellFormed() && ![".", ".."].includes(id));
        const address = { screen, id: isAbout ? id : "", query: fields.write(state) };
        const url = new URL(formatAddress(address), "http://node/below/a/path/");
        const back = parseAddress(url.pathname.slice("/below/a/path/".length), url.search)!;
        expect({ screen: back.screen, id: back.id }).toEqual({ screen, id: isAbout ? id : "" });
        expect(fields.read(back.query)).toEqual(state);
      },
    ),
  );
});

test("any address parses, and formats the same way again", () => {
  const query = fc.array(
    fc.tuple(fc.constantFrom(...Object.keys(fields.shape), "else"), fc.string()),
  );
  fc.assert(
    fc.property(query, (pairs) => {
      const state = fields.read(new URLSearchParams(pairs));
      expect(fields.read(fields.write(state))).toEqual(state);
    }),
  );
});

test("defaults are not in the address", () => {
  expect(fields.write(fields.empty).toString()).toBe("");
});

test("repeated columns are listed once", () => {
  const { read } = distinct(["time"]);
  expect(read(["a=b", "c", "", "a=b"])).toEqual(["a=b", "c"]);
  expect(read([])).toEqual(["time"]);
  expect(read([""])).toEqual([]);
});
