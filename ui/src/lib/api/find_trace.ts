/** Traces by a pasted id. */

import { get } from "./client";
import type { TracesAnswer, TraceSummary } from "./types.gen";

/** Traces whose id begins with these digits, of any time. */
export async function findTraces(
  prefix: string,
  signal?: AbortSignal,
): Promise<readonly TraceSummary[]> {
  return (await get<TracesAnswer>("api/v1/traces/lookup", { id: prefix }, signal)).traces;
}
