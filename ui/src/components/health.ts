import type { Check, HealthAnswer } from "../lib/api/types.gen";

/** How a room does; `off` is one that nobody has switched on. */
export type HealthState = "ok" | "degraded" | "failed" | "off";

export const STATE_NAMES: Record<HealthState, string> = {
  ok: "ok",
  degraded: "degraded",
  failed: "failed",
  off: "off",
};

/** One sentence about everything, which changes only when something does. */
export function summarizeHealth(health: HealthAnswer): { state: HealthState; text: string } {
  const failed = health.checks.filter((check) => check.state === "failed");
  const degraded = health.checks.filter((check) => check.state === "degraded");
  const names = (checks: readonly Check[]) => checks.map((check) => check.room).join(", ");
  if (failed.length) return { state: "failed", text: `Failed: ${names(failed)}.` };
  if (degraded.length) {
    return {
      state: "degraded",
      text: `Degraded: ${names(degraded)}. What was acknowledged is safe.`,
    };
  }
  return { state: "ok", text: "All rooms are well." };
}
