/** Cursors of records: `time-partition-offset-row`. */

export type Order = "newest" | "oldest";

/** Compare by list order; negative if `one` comes first. */
export function compared(one: string, other: string, order: Order): number {
  const [ones, others] = [numbersOf(one), numbersOf(other)];
  for (let i = 0; i < ones.length; i++) {
    const difference = ones[i]! - (others[i] ?? 0);
    if (difference) return order === "oldest" ? difference : -difference;
  }
  return 0;
}

/** The page of the record at `cursor`; `ends` are the last records of the pages. */
export function pageOf(cursor: string, ends: readonly string[], order: Order): number {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compared(ends[middle]!, cursor, order) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function numbersOf(cursor: string): number[] {
  const match = /^(-?\d+)-(\d+)-(\d+)-(\d+)$/.exec(cursor);
  return match ? match.slice(1).map(Number) : [];
}
