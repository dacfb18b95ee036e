import fc from "fast-check";
import { expect, test } from "vitest";

import { ServiceColors } from "./service_colors";

const COUNT = 12;

test("services have distinct colours while there are enough, also after a reload", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 40 }), (services) => {
      const colors = new ServiceColors(COUNT);
      const given = services.map((service) => colors.of(service).color);
      expect(new Set(given).size).toBe(Math.min(COUNT, services.length));
      const again = new ServiceColors(COUNT, colors.all);
      expect(services.map((service) => again.of(service))).toEqual(
        given.map((color) => ({ color, isNew: false })),
      );
    }),
  );
});

test("invalid stored colours are ignored", () => {
  const colors = new ServiceColors(COUNT, [
    ["a", 99],
    ["b", -1],
    ["c", 0.5],
  ]);
  for (const service of ["a", "b", "c"]) expect(colors.of(service).isNew).toBe(true);
});

test("another tab's colours are taken over, those in use do not change", () => {
  const colors = new ServiceColors(12);
  const cart = colors.of("cart").color;
  colors.learn([
    ["cart", (cart + 1) % 12],
    ["web", (cart + 2) % 12],
  ]);
  expect(colors.of("cart").color).toBe(cart);
  expect(colors.of("web")).toEqual({ color: (cart + 2) % 12, isNew: false });
});
