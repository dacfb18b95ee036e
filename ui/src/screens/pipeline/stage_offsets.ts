import type { TopicStatus } from "../../lib/api/types.gen";

export interface StageOffsets {
  /** Durable offsets of all partitions. */
  readonly end: number;
  /** Offsets ahead of each stage; disabled stages are left out. */
  readonly lags: readonly { readonly stage: "hot" | "lake"; readonly lag: number }[];
}

export function stageOffsets({ partitions }: Pick<TopicStatus, "partitions">): StageOffsets {
  const lagOf = (stage: "hot" | "lake", lags: readonly (number | null)[]) => {
    const known = lags.filter((lag) => lag !== null);
    return known.length ? [{ stage, lag: known.reduce((total, lag) => total + lag, 0) }] : [];
  };
  return {
    end: partitions.reduce((total, part) => total + part.durable_watermark, 0),
    lags: [
      ...lagOf(
        "hot",
        partitions.map((part) => part.hot_lag_offsets),
      ),
      ...lagOf(
        "lake",
        partitions.map((part) => part.lake_lag_offsets),
      ),
    ],
  };
}
