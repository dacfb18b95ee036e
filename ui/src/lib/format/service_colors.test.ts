import fc from "fast-check";
import { expect, test } from "vitest";

import { ServicePlaces } from "./service_colors";

const COUNT = 12;

test("no two services share a place before all are taken, and a reload changes nothing", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 40 }), (services) => {
      const places = new ServicePlaces(COUNT);
      const given = services.map((service) => places.of(service).place);
      expect(new Set(given).size).toBe(Math.min(COUNT, services.length));
      const again = new ServicePlaces(COUNT, places.all);
      expect(services.map((service) => again.of(service))).toEqual(
        given.map((place) => ({ place, isNew: false })),
      );
    }),
  );
});

test("what somebody else has kept is no place", () => {
  const places = new ServicePlaces(COUNT, [
    ["a", 99],
    ["b", -1],
    ["c", 0.5],
  ]);
  for (const service of ["a", "b", "c"]) expect(places.of(service).isNew).toBe(true);
});
