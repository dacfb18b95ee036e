/** Log patterns as table rows. */

import type { LogPattern } from "../../../lib/api/types.gen";
import type { TimeRange } from "../../../lib/time/range";

const VARIABLE = "<*>";

export interface PatternPart {
  readonly text: string;
  readonly isVariable: boolean;
}

/** Fixed and variable parts of a pattern, in order. */
export function patternParts(pattern: string): PatternPart[] {
  return pattern
    .split(VARIABLE)
    .flatMap((text, i) => [
      ...(i ? [{ text: VARIABLE, isVariable: true }] : []),
      ...(text ? [{ text, isVariable: false }] : []),
    ]);
}

/** Records per step over the whole range. */
export function trendOf(trend: LogPattern["trend"], range: TimeRange, stepS: number): number[] {
  const stepMs = stepS * 1000;
  const first = Math.floor(range.sinceMs / stepMs);
  const counts = Array<number>(Math.max(1, Math.ceil(range.untilMs / stepMs) - first)).fill(0);
  for (const [time, count] of Object.entries(trend)) {
    const place = Math.floor(Date.parse(time) / stepMs) - first;
    if (place >= 0 && place < counts.length) counts[place] = count;
  }
  return counts;
}
