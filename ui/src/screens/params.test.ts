/** Every screen's parameters survive the address, whatever it contains. */

import fc from "fast-check";
import { expect, test } from "vitest";

import type { Codec, Shape } from "../lib/router/codec";
import { rangeCodec } from "../lib/time/range";

const modules = import.meta.glob<Record<string, unknown>>("./*/params.ts", { eager: true });
const codecs: [string, Codec<Shape>][] = [["the time", rangeCodec]];
for (const [path, exported] of Object.entries(modules)) {
  for (const [name, value] of Object.entries(exported)) {
    if (isCodec(value)) codecs.push([`${path} ${name}`, value]);
  }
}

test.each(codecs)("%s", (_, fields) => {
  const names = Object.keys(fields.shape);
  // Mostly values that the page writes, sometimes values that a user typed.
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom("1", "0", "", "-5", "1e3", "a=b", "true", "null", "[]", "{}"),
    fc.constantFrom(...names.flatMap((name) => fields.shape[name]!.write(fields.empty[name]))),
  );
  const query = fc.array(fc.tuple(fc.constantFrom(...names), word), { maxLength: 20 });
  fc.assert(
    fc.property(query, (pairs) => {
      const state = fields.read(new URLSearchParams(pairs));
      const address = fields.write(state).toString();
      const again = fields.read(new URLSearchParams(address));
      expect(again).toEqual(state);
      expect(fields.write(again).toString()).toBe(address);
    }),
    { numRuns: 300 },
  );
  expect(fields.write(fields.empty).toString()).toBe("");
});

function isCodec(value: unknown): value is Codec<Shape> {
  return typeof value === "object" && value !== null && "shape" in value && "write" in value;
}
