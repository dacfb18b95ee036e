/** Warnings about a trace. */

import { count } from "../../../lib/format/format";
import type { Spans } from "./spans";

export interface Warning {
  readonly text: string;
  /** Affected spans; empty for all. */
  readonly indices: readonly number[];
}

export function warningsOf(spans: Spans): Warning[] {
  const orphans = indices(spans.isOrphan);
  const skewed = indices(spans.isSkewed);
  const warnings: Warning[] = [];
  if (spans.isCut) {
    const text = `This trace has more spans. Only the first ${count(spans.count)} are shown.`;
    warnings.push({ text, indices: [] });
  }
  if (orphans.length) {
    const text = `${spansOf(orphans.length, "has", "have")} a missing parent: not sent, not sampled, or still running.`;
    warnings.push({ text, indices: orphans });
  }
  if (skewed.length) {
    const text = `${spansOf(skewed.length, "starts before its parent", "start before their parents")} (clock skew).`;
    warnings.push({ text, indices: skewed });
  }
  return warnings;
}

function spansOf(number: number, one: string, many: string): string {
  return number === 1 ? `1 span ${one}` : `${count(number)} spans ${many}`;
}

function indices(marks: Uint8Array): number[] {
  const found: number[] = [];
  marks.forEach((mark, index) => mark && found.push(index));
  return found;
}
