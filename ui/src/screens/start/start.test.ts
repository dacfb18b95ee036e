import { expect, test } from "vitest";

import { formatAmount, firstSignal } from "./first_data";
import { LANGUAGES, TRANSPORTS } from "./params";
import { describe, worst } from "./overview";
import { endpointOf, setupSteps, type Target } from "./setup_steps";

const target: Target = {
  host: "box.example",
  ports: { grpc: 4317, http: 4318 },
  isTls: false,
  needsToken: false,
};
const all = (language: (typeof LANGUAGES)[number], by: "http" | "grpc", at = target) =>
  setupSteps(language, at, by)
    .map((step) => step.text)
    .join("\n");

test.each(LANGUAGES.flatMap((language) => TRANSPORTS.map((by) => [language, by] as const)))(
  "%s over %s names this node, and a token only where one is wanted",
  (language, by) => {
    const text = all(language, by);
    const port = language === "shell" ? 4318 : by === "grpc" ? 4317 : 4318;
    expect(text).toContain(`box.example:${port}`);
    expect(text).not.toContain("YOUR_TOKEN");
    expect(all(language, by, { ...target, needsToken: true })).toContain("YOUR_TOKEN");
    expect(text).not.toMatch(/\n\n/);
  },
);

test("TLS endpoints use https", () => {
  expect(endpointOf({ ...target, isTls: true }, "http")).toBe("https://box.example:4318");
  expect(all("collector", "grpc")).toContain("insecure: true");
  expect(all("collector", "grpc", { ...target, isTls: true })).not.toContain("insecure");
});

test("the shell's quoting yields valid JSON", () => {
  const body = /-d '(.*)'$/m.exec(all("shell", "http"))?.[1] ?? "";
  const read = body.replace("'$(date +%s)'", "1794839872");
  expect(JSON.parse(read)).toHaveProperty("resourceLogs");
});

test("failures with a message come first, then those that began there", () => {
  const failure = (count: number, message: string | null, origin_count = 0) => ({
    service: "s",
    operation: "o",
    message,
    count,
    error_type: null,
    origin_count,
    last_trace_id: "",
  });
  const found = describe([failure(9, null), failure(3, "a"), failure(5, "b"), failure(1, null)], 3);
  expect(found.map((each) => each.count)).toEqual([5, 3, 9]);
  const began = describe([failure(9, "it failed below"), failure(3, "it is full", 3)], 2);
  expect(began.map((each) => each.count)).toEqual([3, 9]);
});

test("the service with most errors comes first", () => {
  const service = (name: string, error_count: number, request_count: number) => ({
    name,
    error_count,
    request_count,
    last_seen: "",
  });
  const names = worst([service("a", 0, 9), service("b", 2, 5), service("c", 7, 8)]);
  expect(names.map((each) => each.name)).toEqual(["c", "b", "a"]);
});

test("the first signal is described", () => {
  const spans = { service: "checkout", signal: "spans", row_count: 12 } as const;
  const logs = { service: "checkout", signal: "logs", row_count: 1 } as const;
  expect(firstSignal([logs, spans])).toBe(spans);
  expect(firstSignal([])).toBe(null);
  expect([formatAmount(spans), formatAmount(logs)]).toEqual(["12 spans", "1 log record"]);
});
