import {
  columnFromValues,
  type DataType,
  decimal,
  int64,
  list,
  map,
  struct,
  tableFromColumns,
  tableFromIPC,
  tableToIPC,
  timestamp,
  TimeUnit,
  utf8,
} from "@uwdata/flechette";
import fc from "fast-check";
import { expect, test } from "vitest";

import { decimalText, exactText, exactTime, kindOf, numberOf, plain, sorted } from "./cells";
import { jsonText, parsedJson } from "../../../lib/format/json";

/** As decoded from the node's response. */
function through(values: readonly unknown[], type: DataType): unknown[] {
  const sent = tableToIPC(tableFromColumns({ c: columnFromValues(values, type) }), {
    format: "stream",
  });
  const exact = { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true };
  return Array.from(tableFromIPC(sent ?? new Uint8Array(), exact).getChild("c"));
}

test("64-bit integers are exact", () => {
  const type = int64();
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      expect(exactText(through([value], type)[0], type)).toBe(String(value));
    }),
    { numRuns: 100 },
  );
});

test("timestamps have all digits, also before 1970", () => {
  expect(exactTime(1_794_841_200_701_002_003n, TimeUnit.NANOSECOND, true)).toBe(
    "2026-11-16T15:00:00.701002003Z",
  );
  expect(exactTime(-1n, TimeUnit.MICROSECOND, false)).toBe("1969-12-31T23:59:59.999999");
  expect(exactTime(2n ** 62n, TimeUnit.SECOND, true)).toBe(`${2n ** 62n} s`);
});

test("microsecond timestamps match Date", () => {
  fc.assert(
    fc.property(fc.integer({ min: -4e15, max: 4e15 }), (us) => {
      const text = exactTime(BigInt(us), TimeUnit.MICROSECOND, true);
      expect(Date.parse(`${text.slice(0, 23)}Z`)).toBe(Math.floor(us / 1000));
    }),
  );
});

test("decimals keep their digits", () => {
  expect(decimalText(-5n, 2)).toBe("-0.05");
  expect(decimalText(123456789012345678901234567890n, 10)).toBe("12345678901234567890.1234567890");
  expect(decimalText(7n, 0)).toBe("7");
  expect(kindOf(decimal(10, 2))).toBe("number");
});

test("maps, structs and lists become JSON, whatever their keys", () => {
  const type = map(utf8(), utf8());
  const [value] = through(
    [
      [
        ["__proto__", "x"],
        ["constructor", '"'],
      ],
    ],
    type,
  );
  expect(exactText(value, type)).toBe('{"__proto__":"x","constructor":"\\""}');
  const nested = list(struct({ n: int64(), t: timestamp(TimeUnit.MICROSECOND, "UTC") }));
  const [rows] = through([[{ n: 2n ** 60n, t: 1_700_000_000_000 }]], nested);
  expect(jsonText(plain(rows, nested))).toContain(String(2n ** 60n));
  expect(kindOf(nested)).toBe("nested");
});

test("JSON reads back", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 4 }), (value, indent) => {
      expect(JSON.parse(jsonText(value, indent))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
  expect(parsedJson('{"a": 1}')).toEqual({ a: 1 });
  expect(parsedJson("{broken")).toBeUndefined();
  expect(parsedJson("5")).toBeUndefined();
  const long = '{"id":9007199254740993,"list":[1.5,-12345678901234567890]}';
  expect(jsonText(parsedJson(long))).toBe(long);
});

test("sorting is stable, keeps every row, and puts nulls last", () => {
  const type = int64();
  const values = fc.array(fc.option(fc.bigInt({ min: -3n, max: 3n })));
  fc.assert(
    fc.property(values, fc.boolean(), (given, isDescending) => {
      const order = [...sorted(given, type, isDescending)];
      expect(order.toSorted((a, b) => a - b)).toEqual(given.map((_, i) => i));
      for (let i = 1; i < order.length; i++) {
        const [before, after] = [given[order[i - 1]!], given[order[i]!]];
        if (before === after) expect(order[i - 1]!).toBeLessThan(order[i]!);
        else if (before === null) throw new Error("a null before a value");
        else if (after !== null) expect(before! < after! !== isDescending).toBe(true);
      }
    }),
  );
});

test("numbers are parsed for charts", () => {
  expect(numberOf(1_500_000n, timestamp(TimeUnit.MICROSECOND))).toBe(1500);
  expect(numberOf(150n, decimal(10, 2))).toBe(1.5);
  expect(numberOf(Number.NaN, int64())).toBeNull();
  expect(numberOf(null, int64())).toBeNull();
});
