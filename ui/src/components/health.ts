import type { Check, HealthAnswer } from "../lib/api/types.gen";

/** Health of a component; `off` means disabled. */
export type HealthState = "ok" | "degraded" | "failed" | "off";

export const STATE_NAMES: Record<HealthState, string> = {
  ok: "ok",
  degraded: "degraded",
  failed: "failed",
  off: "off",
};

/** One sentence about the whole node; it changes only when the health does. */
export function summarizeHealth(health: HealthAnswer): { state: HealthState; text: string } {
  const failed = health.checks.filter((check) => check.state === "failed");
  const degraded = health.checks.filter((check) => check.state === "degraded");
  const names = (checks: readonly Check[]) => checks.map((check) => check.component).join(", ");
  if (failed.length) return { state: "failed", text: `Failed: ${names(failed)}.` };
  if (degraded.length) {
    return {
      state: "degraded",
      text: `Degraded: ${names(degraded)}. Acknowledged data is safe.`,
    };
  }
  return { state: "ok", text: "All systems healthy" };
}
