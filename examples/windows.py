"""Count log records per minute, service and severity as they arrive.

    python examples/windows.py --data data --checkpoint windows.ckpt --output windows

A minute is written ten minutes after its end, to allow for late records. After a stop or a crash
the query continues where it was: each batch is written to its own folder, which is replaced if the
batch is repeated, so the output has every row once.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import frazil.lake

LATE = "10 minutes"
"""Records that are later than this behind the newest one are not counted."""
COLUMNS = "time,service_name,severity_number"
"""Only these columns are passed to Spark."""


def per_minute(rows: DataFrame) -> DataFrame:
    """Works for a stream and for a table."""
    counted = (
        rows.withWatermark("time", LATE)
        .groupBy(F.window("time", "1 minute").alias("minute"), "service_name", "severity_number")
        .count()
    )
    return counted.select(
        F.col("minute.start").alias("minute"), "service_name", "severity_number", "count"
    )


def start(spark: SparkSession, options: argparse.Namespace) -> StreamingQuery:
    rows = spark.readStream.format("frazil").options(
        table="logs", columns=COLUMNS, maxOffsetsPerTrigger=options.offsets_per_trigger
    )
    if options.drain:
        rows = rows.option("endingOffsets", "latest")

    def write(batch: DataFrame, number: int) -> None:
        batch.coalesce(1).write.mode("overwrite").parquet(f"{options.output}/batch={number}")

    return (
        per_minute(rows.load())
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", options.checkpoint)
        .queryName("windows")
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
