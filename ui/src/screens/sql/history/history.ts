/** Recent queries, stored in this browser. */

export interface HistoryEntry {
  readonly text: string;
  readonly engine: "own" | "spark";
  /** Time of the run in milliseconds since 1970. */
  readonly at: number;
  readonly tookMs: number | null;
  readonly rows: number | null;
  /** Error message; empty on success. */
  readonly error: string;
}

export const HISTORY_MAX = 200;
const TEXT_MAX = 20_000;
const ERROR_MAX = 300;

/** Newest first; a repeated query moves to the front. */
export function addToHistory(
  history: readonly HistoryEntry[],
  entry: HistoryEntry,
): HistoryEntry[] {
  if (entry.text.length > TEXT_MAX) return [...history];
  const kept = history.filter((each) => each.text !== entry.text || each.engine !== entry.engine);
  return [{ ...entry, error: entry.error.slice(0, ERROR_MAX) }, ...kept].slice(0, HISTORY_MAX);
}

/** Entries that contain all words, ignoring case. */
export function searchHistory<T extends { readonly text: string }>(
  all: readonly T[],
  typed: string,
): T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((each) => {
    const text = each.text.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Parse the stored text; invalid entries are dropped. */
export function parseHistory(stored: string | null): HistoryEntry[] {
  return listOf(stored).flatMap((each) => {
    const { text, engine, at, tookMs, rows, error } = each;
    if (typeof text !== "string" || typeof at !== "number") return [];
    return [
      {
        text,
        at,
        engine: engine === "spark" ? ("spark" as const) : ("own" as const),
        tookMs: typeof tookMs === "number" ? tookMs : null,
        rows: typeof rows === "number" ? rows : null,
        error: typeof error === "string" ? error : "",
      },
    ];
  });
}

function listOf(stored: string | null): Record<string, unknown>[] {
  try {
    const list = JSON.parse(stored ?? "[]") as unknown;
    if (!Array.isArray(list)) return [];
    return list.filter(
      (each): each is Record<string, unknown> => typeof each === "object" && each !== null,
    );
  } catch {
    return []; // Invalid or truncated.
  }
}
