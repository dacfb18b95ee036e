"""How many log records each service sends per minute and severity, as they come.

    python examples/windows.py --data data --checkpoint windows.ckpt --output windows

Each minute is written once it is over, and ten more have passed for what comes late. Stopped or
killed, it goes on where it was: every batch has a folder of its own below the output, which is
replaced when the batch is done again, so a reader of the whole output finds every row once.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import frazil.lake

LATE = "10 minutes"
"""How much later than the newest record one may come and still be counted."""
COLUMNS = "time,service_name,severity_number"
"""The source decodes whole requests; what is not wanted need not come over to Spark."""


def per_minute(rows: DataFrame) -> DataFrame:
    """The same for a stream and for a table."""
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
