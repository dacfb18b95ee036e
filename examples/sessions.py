"""Sessions of each service: log records without a gap of more than five minutes.

    python examples/sessions.py --data data --checkpoint sessions.ckpt --output sessions

A session is written once it is complete. After a stop or a crash the query continues where it was:
each batch is written to its own folder, which is replaced if the batch is repeated.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import frazil.lake

GAP = "5 minutes"
LATE = "10 minutes"
COLUMNS = "time,service_name,severity_number"
ERROR = 17
"""Lowest severity number of errors."""


def sessions_of(rows: DataFrame) -> DataFrame:
    """Works for a stream and for a table."""
    errors = F.sum(F.when(F.col("severity_number") >= ERROR, 1).otherwise(0))
    grouped = (
        rows.withWatermark("time", LATE)
        .groupBy(F.session_window("time", GAP).alias("session"), "service_name")
        .agg(F.count("*").alias("records"), errors.alias("errors"))
    )
    return grouped.select("service_name", "session.start", "session.end", "records", "errors")


def start(spark: SparkSession, options: argparse.Namespace) -> StreamingQuery:
    rows = spark.readStream.format("frazil").options(
        table="logs", columns=COLUMNS, maxOffsetsPerTrigger=options.offsets_per_trigger
    )
    if options.drain:
        rows = rows.option("endingOffsets", "latest")

    def write(batch: DataFrame, number: int) -> None:
        batch.coalesce(1).write.mode("overwrite").parquet(f"{options.output}/batch={number}")

    return (
        sessions_of(rows.load())
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", options.checkpoint)
        .queryName("sessions")
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
