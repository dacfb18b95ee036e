/** Reads an Arrow stream with its metadata. */

import { type Table, tableFromIPC } from "@uwdata/flechette";

import type { TableScan } from "../../../lib/api/types.gen";
import { ApiError } from "../../../lib/api/client";
import { readMetadata } from "./stream_metadata";

export interface QueryResult {
  readonly table: Table;
  /** Whether there are more rows. */
  readonly isCut: boolean;
  /** Scan statistics per table. */
  readonly parts: readonly TableScan[];
  readonly bytes: number;
}

/** Larger results are useless as a table and may exceed the tab's memory. */
const BYTES_MAX = 256 * 1024 * 1024;
const CUT_KEY = "frazil.is_cut";
const ERROR_KEY = "frazil.error";
const PARTS_KEY = "frazil.parts";

/** Keep 64-bit integers and times exact. */
const EXACT = { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true };

/** Read a response; `onbytes` reports progress. */
export async function readArrow(
  answer: Response,
  onbytes: (bytes: number) => void,
): Promise<QueryResult> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let isBroken = false;
  const reader = answer.body?.getReader();
  try {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
      chunks.push(piece.value);
      bytes += piece.value.length;
      onbytes(bytes);
      if (bytes > BYTES_MAX) {
        await reader?.cancel();
        throw new ApiError(
          "too_large",
          "The result exceeds 256 MiB. Select fewer rows or columns, or export it.",
        );
      }
    }
  } catch (error) {
    if (error instanceof ApiError || (error as Error).name === "AbortError") throw error;
    isBroken = true; // The last batch may carry an error.
  }
  const whole = concat(chunks, bytes);
  const streamInfo = readMetadata(whole);
  const failure = streamInfo.metadata.get(ERROR_KEY);
  if (failure) throw errorIn(failure);
  if (isBroken || !streamInfo.hasEnd) {
    throw new ApiError("unavailable", "The result is incomplete. Run the query again.");
  }
  const table = tableFromIPC(whole, EXACT);
  return {
    table,
    isCut: streamInfo.metadata.get(CUT_KEY) === "true",
    parts: scansIn(table.schema.metadata?.get(PARTS_KEY)),
    bytes,
  };
}

function concat(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function errorIn(text: string): ApiError {
  const { kind, message } = JSON.parse(text) as { kind: string; message: string };
  return new ApiError(kind, message);
}

function scansIn(text: string | undefined): TableScan[] {
  return text ? (JSON.parse(text) as TableScan[]) : [];
}
