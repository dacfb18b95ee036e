import { expect, test } from "vitest";

import { changeOf, changeText, choicesOf, compareParams, PREVIOUS, sidesOf } from "./comparison";

test("versions survive the address, whatever they contain", () => {
  const deployment = { service: "a", version: "2&x=1", previous_version: "1 = é", time: "" };
  const [previous, versions] = choicesOf([deployment]);
  expect(previous?.value).toBe(PREVIOUS);
  expect(compareParams(PREVIOUS)).toEqual({});
  const value = versions?.value ?? "";
  expect(compareParams(value)).toEqual({ version: "2&x=1", baseline_version: "1 = é" });
  expect(sidesOf(value)).toEqual(["1 = é", "2&x=1"]);
});

test("changes are relative to the baseline", () => {
  expect(changeText(changeOf(100, 150))).toBe("+50 %");
  expect(changeText(changeOf(100, 50))).toBe("−50 %");
  expect(changeText(changeOf(100, 100))).toBe("±0 %");
  expect(changeText(changeOf(0, 100))).toBe("–");
  expect(changeText(changeOf(5, null))).toBe("–");
});
