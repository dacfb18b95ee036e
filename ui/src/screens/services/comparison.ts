/** What a service is compared with, as a parameter of the address and of the API. */

import type { Deployment } from "../../lib/api/types.gen";

export const PREVIOUS = "previous";

export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** The previous period, and each new version with the one before it, newest first. */
export function choicesOf(deployments: readonly Deployment[]): Choice[] {
  return [
    { value: PREVIOUS, label: "Previous period" },
    ...deployments.toReversed().map(({ version, previous_version }) => ({
      value: String(new URLSearchParams({ version, baseline_version: previous_version })),
      label: `${previous_version} → ${version}`,
    })),
  ];
}

/** Parameters of the API; without versions it takes the previous period. */
export function compareParams(value: string): Record<string, string> {
  if (value === PREVIOUS) return {};
  const { version = "", baseline_version = "" } = Object.fromEntries(new URLSearchParams(value));
  return { version, baseline_version };
}

/** Names of both sides. */
export function sidesOf(value: string): readonly [string, string] {
  if (value === PREVIOUS) return ["Previous period", "Selected period"];
  const { version = "", baseline_version = "" } = compareParams(value);
  return [baseline_version, version];
}

/** Relative change in percent; null if there is nothing to compare with. */
export function changeOf(
  before: number | null | undefined,
  after: number | null | undefined,
): number | null {
  if (!before || after === null || after === undefined) return null;
  return (100 * (after - before)) / before;
}

/** "+12 %", "−3 %", "±0 %" */
export function changeText(percent: number | null): string {
  if (percent === null) return "–";
  const rounded = Math.round(percent);
  return `${rounded > 0 ? "+" : rounded < 0 ? "−" : "±"}${Math.abs(rounded).toLocaleString("en")} %`;
}
