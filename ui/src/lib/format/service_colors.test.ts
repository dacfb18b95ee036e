import fc from "fast-check";
import { expect, test } from "vitest";

import { colorNumber, colorOf, dashesOf } from "./service_colors";

const COUNT = 12;
const PALETTE = Array.from({ length: COUNT }, (_, i) => `#${(i + 1).toString(16).repeat(6)}`);

test("a colour depends on the name alone", () => {
  fc.assert(
    fc.property(fc.string(), (service) => {
      const number = colorNumber(service, COUNT);
      expect(number).toBe(colorNumber(service, COUNT));
      expect(number).toBeLessThan(3 * COUNT);
      expect(colorOf(PALETTE, number)).toMatch(/^#[0-9a-f]{6}$/);
    }),
  );
  // Changing these changes the colours that people know.
  expect(["cart", "checkout", "payment"].map((name) => colorNumber(name, COUNT))).toEqual([
    26, 10, 35,
  ]);
});

test("the services of the demo have different colours", () => {
  const services = "payment storefront checkout shipping catalogue gateway cart mailer".split(" ");
  expect(new Set(services.map((name) => colorNumber(name, COUNT) % COUNT)).size).toBe(8);
});

test("lines of services that share a colour differ, in any order of the lines", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 40 }), (services) => {
      const dashes = dashesOf(services, 1);
      const backwards = dashesOf(services.toReversed(), 1).reverse();
      expect(backwards).toEqual(dashes);
      const looks = services.map((name, i) => `${colorNumber(name, 1)} ${dashes[i]!.join()}`);
      // Three shades with four patterns each.
      if (services.length <= 4) expect(new Set(looks).size).toBe(services.length);
    }),
  );
  expect(dashesOf(["cart", "cart"], COUNT)).toEqual([[], []]);
});
