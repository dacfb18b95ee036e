import fc from "fast-check";
import { expect, test } from "vitest";

import { EventParser, type ServerEvent } from "./event_parser";

const texts = fc.string().filter((text) => !/[\r\n]/.test(text));
const events = fc.array(
  fc.record({
    name: fc.constantFrom("", "skipped"),
    data: fc.array(texts, { minLength: 1, maxLength: 3 }),
  }),
);

test("parsing does not depend on chunk boundaries", () => {
  fc.assert(
    fc.property(events, fc.array(fc.nat(40)), (given, cuts) => {
      const whole = given
        .map(
          ({ name, data }) =>
            (name ? `event: ${name}\n` : "") +
            data.map((line) => `data: ${line}\n`).join("") +
            "\n",
        )
        .join(": a comment\n\n");
      const parser = new EventParser();
      const heard: ServerEvent[] = [];
      let rest = whole;
      for (const cut of cuts) {
        heard.push(...parser.feed(rest.slice(0, cut)));
        rest = rest.slice(cut);
      }
      heard.push(...parser.feed(rest));
      expect(heard).toEqual(given.map(({ name, data }) => ({ name, data: data.join("\n") })));
    }),
  );
});

test("the last event id is kept", () => {
  const parser = new EventParser();
  parser.feed("id: 0:7\n\ndata: x\n\n");
  expect(parser.lastId).toBe("0:7");
});
