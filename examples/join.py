"""Log records of each span: a join of two streams by trace and time.

    python examples/join.py --data data --checkpoint join.ckpt --output joined

A pair is written as soon as both rows have arrived, in any order. After a stop or a crash the query
continues where it was: each batch is written to its own folder, which is replaced if the batch is
repeated, so the output has every pair once.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import frazil.lake

LATE = "10 minutes"
"""How long a row waits for late ones. Together with the bound below it limits the state."""
BOUND = "log_time BETWEEN span_time - INTERVAL 1 MINUTE AND span_time + INTERVAL 5 MINUTES"
SPAN_COLUMNS = "time,trace_id,span_id,service_name,name"
LOG_COLUMNS = "time,trace_id,service_name,severity_number,body,_log_partition,_offset,_row"


def logged_during(spans: DataFrame, logs: DataFrame) -> DataFrame:
    """Works for streams and for tables."""
    left = spans.select(
        F.col("time").alias("span_time"), "trace_id", "span_id", "name"
    ).withWatermark("span_time", LATE)
    right = logs.where("trace_id IS NOT NULL").select(
        F.col("time").alias("log_time"),
        F.col("trace_id").alias("log_trace_id"),
        *("service_name", "severity_number", "body", "_log_partition", "_offset", "_row"),
    )
    right = right.withWatermark("log_time", LATE)
    return left.join(right, F.expr(f"trace_id = log_trace_id AND {BOUND}")).drop("log_trace_id")


def start(spark: SparkSession, options: argparse.Namespace) -> StreamingQuery:
    def rows(table: str, columns: str) -> DataFrame:
        reader = spark.readStream.format("frazil").options(
            table=table, columns=columns, maxOffsetsPerTrigger=options.offsets_per_trigger
        )
        return (reader.option("endingOffsets", "latest") if options.drain else reader).load()

    def write(batch: DataFrame, number: int) -> None:
        batch.coalesce(1).write.mode("overwrite").parquet(f"{options.output}/batch={number}")

    return (
        logged_during(rows("spans", SPAN_COLUMNS), rows("logs", LOG_COLUMNS))
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", options.checkpoint)
        .queryName("join")
        .start()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="data", help="data folder; may be in use by a node")
    parser.add_argument("--checkpoint", required=True, help="folder for the state of the query")
    parser.add_argument("--output", required=True, help="folder for Parquet files")
    parser.add_argument("--offsets-per-trigger", type=int, default=10_000, metavar="REQUESTS")
    parser.add_argument(
        "--drain", action="store_true", help="stop after reading the rows that exist now"
    )
    options = parser.parse_args()
    query = start(frazil.lake.session(options.data), options)
    if options.drain:
        query.processAllAvailable()
        query.stop()
    else:
        query.awaitTermination()


if __name__ == "__main__":
    main()
