/** Status samples of the last minutes, collected while the page is open. */

import type { Status } from "../api/types.gen";

const RETAINED_MS = 5 * 60_000;

/** Values of one sample, by name. */
export interface Sample {
  readonly atMs: number;
  readonly values: Readonly<Record<string, number | null>>;
}

export function appendSample(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  return [...samples.filter(({ atMs }) => sample.atMs - atMs < RETAINED_MS), sample];
}

export function sampleOf(status: Status, atMs: number): Sample {
  const parts = status.log.topics.flatMap((topic) => topic.partitions);
  const sum = (numbers: readonly (number | null)[]) =>
    numbers.reduce<number>((total, each) => total + (each ?? 0), 0);
  const values: Record<string, number | null> = {
    rows_per_s: sum(status.rates.map((rate) => rate.records_per_s)),
    bytes_per_s: sum(status.rates.map((rate) => rate.bytes_per_s)),
    sync_ms: status.log.syncing?.p99_ms ?? null,
    acknowledge_ms: status.ingest.acknowledging?.p99_ms ?? null,
    queries_per_s: status.query?.queries_per_s ?? null,
    answer_ms: status.query?.answering?.p99_ms ?? null,
    hot_offset: sum(parts.map((part) => part.hot_watermark)),
    lake_offset: sum(parts.map((part) => part.lake_watermark)),
    lake_rows: status.lake ? sum(status.lake.tables.map((table) => table.rows)) : null,
    lag_bytes: status.lake?.lag_bytes ?? null,
    hot_bytes: status.hot?.memory_bytes ?? null,
    subscriber_lag: sum(status.subscribers.map((each) => each.lag_offsets)),
    refused: sum(status.ingest.signals.map((signal) => signal.refused_requests)),
  };
  for (const rate of status.rates) values[`rows_per_s.${rate.signal}`] = rate.records_per_s;
  for (const each of status.ingest.transports) {
    values[`requests.${each.transport}`] = each.accepted_requests;
  }
  return { atMs, values };
}

/** Values of one name, oldest first; gaps are null. */
export function trendOf(samples: readonly Sample[], name: string): readonly (number | null)[] {
  return samples.map((sample) => sample.values[name] ?? null);
}

/**
 * Increase per second over the last `withinMs`. Null if unknown; after a reset, as by a restart,
 * counting starts again.
 */
export function increasePerSecond(
  samples: readonly Sample[],
  name: string,
  withinMs: number,
): number | null {
  const last = samples.at(-1);
  if (!last) return null;
  const window = samples.filter(({ atMs }) => last.atMs - atMs <= withinMs);
  let increase = 0;
  for (let i = 1; i < window.length; i++) {
    const [before, after] = [window[i - 1]!.values[name], window[i]!.values[name]];
    if (before != null && after != null && after > before) increase += after - before;
  }
  const seconds = (last.atMs - window[0]!.atMs) / 1000;
  return seconds > 0 ? increase / seconds : null;
}
