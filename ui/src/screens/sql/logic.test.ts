/** Tests of history, plots, error positions, plans and stream metadata. */

import fc from "fast-check";
import { expect, test } from "vitest";

import { beginsOf, columnsBetween, shortType } from "./result/columns";
import {
  type HistoryEntry,
  HISTORY_MAX,
  parseHistory,
  searchHistory,
  addToHistory,
} from "./history/history";
import { errorPosition } from "./editor/error_position";
import { sectionsOf, stepsOf } from "./result/plan";
import { chooseColumns, plotLines, LINES_MAX } from "./result/plot";
import { readMetadata } from "./run/stream_metadata";

const asked = (text: string, error = ""): HistoryEntry => ({
  text,
  engine: "own",
  at: 1,
  tookMs: 2,
  rows: 3,
  error,
});

test("history is bounded, unique and newest first", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 2 }), { maxLength: 400 }), (texts) => {
      const history = texts.reduce<HistoryEntry[]>(
        (all, text) => addToHistory(all, asked(text)),
        [],
      );
      expect(history.map((each) => each.text)).toEqual(
        [...new Set(texts.toReversed())].slice(0, HISTORY_MAX),
      );
      expect(parseHistory(JSON.stringify(history))).toEqual(history);
    }),
    { numRuns: 50 },
  );
});

test("invalid stored entries are dropped", () => {
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string(), fc.constant(null)), (stored) => {
      expect(Array.isArray(parseHistory(stored))).toBe(true);
    }),
  );
  expect(parseHistory('[{"text": 5}, {"text": "SELECT 1", "at": 1}]')).toHaveLength(1);
});

test("queries of the history are found by words", () => {
  const all = [{ text: "SELECT 1" }, { text: "SELECT duration" }];
  expect(searchHistory(all, "select DUR")).toEqual([all[1]]);
  expect(searchHistory(all, "1 sel")).toEqual([all[0]]);
});

test.each([
  [
    "no column bodi in logs at line 1, column 8; did you mean body?",
    "SELECT bodi FROM logs",
    "bodi",
  ],
  ["this is not SQL at line 2, column 1", "SELECT 1\n; x", ";"],
  ["at line 1, column 3", "'𝒳𝒳' é", "'"],
  ["at line 1, column 9", "SELECT 1", "1"],
])("%s", (message, sql, wanted) => {
  const found = errorPosition(message, sql)!;
  if (wanted === "'") expect(sql.slice(found.from)).toContain("𝒳' é");
  else expect(sql.slice(found.from, found.to)).toBe(wanted);
});

test("an invalid position marks nothing outside the text", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(..."ab \n𝒳é'") }),
      fc.nat(9),
      fc.nat(99),
      (sql, line, column) => {
        const found = errorPosition(`x at line ${line}, column ${column}`, sql);
        if (found) {
          expect(found.from).toBeGreaterThanOrEqual(0);
          expect(found.from).toBeLessThan(found.to);
          expect(found.to).toBeLessThanOrEqual(sql.length);
        }
      },
    ),
  );
  expect(errorPosition("the query took too long", "SELECT 1")).toBeNull();
});

const TIME = { name: "minute", kind: "time" } as const;
const SERVICE = { name: "service", kind: "text" } as const;
const COUNT = { name: "n", kind: "number" } as const;
const MEAN = { name: "mean", kind: "number" } as const;
const NOTHING = { x: "", y: [], series: "" };

test("default chart: numbers over time, a line per text value", () => {
  expect(chooseColumns([SERVICE, TIME, COUNT], NOTHING)).toEqual({ x: 1, y: [2], series: 0 });
  expect(chooseColumns([TIME, COUNT, MEAN], NOTHING)).toEqual({ x: 0, y: [1, 2], series: -1 });
  expect(chooseColumns([SERVICE, COUNT], NOTHING)).toEqual({ x: 0, y: [1], series: -1 });
  expect(chooseColumns([], NOTHING)).toEqual({ x: -1, y: [], series: -1 });
});

test("chosen columns are used if they exist", () => {
  const all = [TIME, SERVICE, COUNT, MEAN];
  expect(chooseColumns(all, { x: "service", y: ["mean"], series: "" })).toEqual({
    x: 1,
    y: [3],
    series: -1,
  });
  expect(chooseColumns(all, { x: "", y: ["mean", "service"], series: "-" })).toEqual({
    x: 0,
    y: [3],
    series: -1,
  });
  expect(chooseColumns(all, { x: "gone", y: ["gone"], series: "gone" }).y).toEqual([2]);
});

test("lines share their times, and no value is lost", () => {
  const point = fc.record({
    timeMs: fc.integer({ min: 0, max: 5 }),
    name: fc.constantFrom("a", "b"),
    value: fc.option(fc.integer()),
  });
  fc.assert(
    fc.property(fc.array(point), (points) => {
      const { timesMs, lines } = plotLines(points);
      expect(timesMs).toEqual([...new Set(timesMs)].toSorted((a, b) => a - b));
      for (const { timeMs, name } of points) {
        const last = points.findLast((each) => each.timeMs === timeMs && each.name === name);
        const line = lines.find((each) => each.name === name)!;
        expect(line.values[timesMs.indexOf(timeMs)]).toBe(last!.value);
      }
    }),
  );
  const many = Array.from({ length: LINES_MAX + 5 }, (_, i) => ({
    timeMs: 0,
    name: `${i}`,
    value: i,
  }));
  const { lines, leftOut } = plotLines(many);
  expect([lines.length, leftOut, lines[0]!.name]).toEqual([LINES_MAX, 5, `${LINES_MAX + 4}`]);
});

test("indentation makes a plan a tree", () => {
  expect(stepsOf("A\n  B\n    C\n  D\nE")).toEqual([
    {
      text: "A",
      indent: 0,
      inside: [
        { text: "B", indent: 2, inside: [{ text: "C", indent: 4, inside: [] }] },
        { text: "D", indent: 2, inside: [] },
      ],
    },
    { text: "E", indent: 0, inside: [] },
  ]);
  const [place, pieces] = sectionsOf([
    ["place", "here"],
    ["pieces", "logs: reads 1"],
    ["pieces", "spans: reads 2"],
  ]);
  expect(place!.name).toBe("Engine");
  expect(pieces!.steps.map((step) => step.text)).toEqual(["logs: reads 1", "spans: reads 2"]);
});

test("only columns in view are rendered", () => {
  const widths = fc.array(fc.integer({ min: 40, max: 400 }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(widths, fc.nat(5000), fc.integer({ min: 1, max: 1500 }), (given, left, width) => {
      const begins = beginsOf(given);
      const [first, last] = columnsBetween(begins, left, left + width);
      given.forEach((_, i) => {
        const isSeen = begins[i]! < left + width && begins[i + 1]! > left;
        if (isSeen) expect(i >= first && i < last).toBe(true);
      });
    }),
  );
});

test("a truncated stream has no end marker and does not throw", () => {
  expect(readMetadata(new Uint8Array()).hasEnd).toBe(false);
  expect(readMetadata(Uint8Array.of(255, 255, 255, 255, 0, 0, 0, 0)).hasEnd).toBe(true);
  expect(readMetadata(Uint8Array.of(255, 255, 255, 255, 16, 0, 0, 0, 1)).hasEnd).toBe(false);
});

test("type names are short", () => {
  expect(shortType('Timestamp(µs, "UTC")')).toBe("timestamp");
  expect(shortType("Utf8View")).toBe("text");
  expect(shortType('Map("entries": Struct())')).toBe("map");
});
