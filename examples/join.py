"""What was logged during each span: a join of two streams, by trace and time.

    python examples/join.py --data data --checkpoint join.ckpt --output joined

A pair is written as soon as both are there, in whichever order they come. Stopped or killed, it
goes on where it was: every batch has a folder of its own below the output, which is replaced when
the batch is done again, so a reader of the whole output finds every pair once.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import frazil.lake

LATE = "10 minutes"
"""How long a row waits for those that come late. With the bound below it says how much is kept."""
BOUND = "log_time BETWEEN span_time - INTERVAL 1 MINUTE AND span_time + INTERVAL 5 MINUTES"
SPAN_COLUMNS = "time,trace_id,span_id,service_name,name"
LOG_COLUMNS = "time,trace_id,service_name,severity_number,body,_log_partition,_offset,_row"


def logged_during(spans: DataFrame, logs: DataFrame) -> DataFrame:
    """The same for streams and for tables."""
    one = spans.select(
        F.col("time").alias("span_time"), "trace_id", "span_id", "name"
    ).withWatermark("span_time", LATE)
    other = logs.where("trace_id IS NOT NULL").select(
        F.col("time").alias("log_time"),
        F.col("trace_id").alias("log_trace_id"),
        *("service_name", "severity_number", "body", "_log_partition", "_offset", "_row"),
    )
    other = other.withWatermark("log_time", LATE)
    return one.join(other, F.expr(f"trace_id = log_trace_id AND {BOUND}")).drop("log_trace_id")


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
    parser.add_argument("--data", default="data", help="the data folder; a node may be using it")
    parser.add_argument("--checkpoint", required=True, help="where the query keeps its state")
    parser.add_argument("--output", required=True, help="a folder for Parquet files")
    parser.add_argument("--offsets-per-trigger", type=int, default=10_000, metavar="REQUESTS")
    parser.add_argument(
        "--drain", action="store_true", help="stop when all that is there now has been read"
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
