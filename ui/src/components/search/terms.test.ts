import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { hasTerm, termOf, withoutTerm, withTerm } from "./terms";

const TERM = "-user.id:*";
const words = fc.constantFrom("timeout", "NOT", "AND", '"two words"', "a:(b OR c)", "-user.id:*");
const queries = fc.array(words).map((all) => all.join(" "));

describe("termOf", () => {
  test.each([
    ["user.id", null, "is", "-user.id:*"],
    ["user.id", null, "not", "user.id:*"],
    ["odd key", null, "is", '-"odd key":*'],
    ["a=b", 'say "x"', "not", '-"a=b":"say \\"x\\""'],
    ["kind", "*", "is", 'kind:"*"'],
  ] as const)("%s %s %s", (name, value, way, term) => {
    expect(termOf(name, value, way)).toBe(term);
  });
});

describe("hasTerm", () => {
  test.each([
    [TERM, true],
    [`timeout ${TERM} x:y`, true],
    [`timeout AND ${TERM}`, true],
    [`(a OR b) ${TERM}`, true],
    ["", false],
    ["user.id:*", false],
    [`${TERM}x`, false],
    [`NOT ${TERM}`, false],
    [`a OR ${TERM}`, false],
    [`(${TERM})`, false],
    [`"said ${TERM} here"`, false],
    [`"with \\" quote" ${TERM}`, true],
    [`"not closed ${TERM}`, false],
  ])("%s", (q, isThere) => {
    expect(hasTerm(q, TERM)).toBe(isThere);
  });
});

describe("withTerm", () => {
  test.each([
    ["", TERM],
    [" timeout ", `timeout ${TERM}`],
    ["a OR b", `(a OR b) ${TERM}`],
    ["(a OR b)", `(a OR b) ${TERM}`],
    ['"a OR b"', `"a OR b" ${TERM}`],
  ])("%s", (q, longer) => {
    expect(withTerm(q, TERM)).toBe(longer);
  });
});

describe("withoutTerm", () => {
  test.each([
    [TERM, ""],
    [`a ${TERM} b`, "a b"],
    [`a AND ${TERM} AND b`, "a AND b"],
    [`${TERM} AND b`, "b"],
    [`NOT ${TERM}  b`, `NOT ${TERM}  b`],
    [`a  OR  ${TERM}`, `a  OR  ${TERM}`],
  ])("%s", (q, shorter) => {
    expect(withoutTerm(q, TERM)).toBe(shorter);
  });

  test("an added term is found and can be removed", () => {
    fc.assert(
      fc.property(queries, (q) => {
        fc.pre(!hasTerm(q, TERM) && !/(?:NOT|AND)$/.test(q));
        const longer = withTerm(q, TERM);
        expect(hasTerm(longer, TERM)).toBe(true);
        expect(withoutTerm(longer, TERM)).toBe(q);
      }),
    );
  });
});
