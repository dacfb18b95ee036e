"""Copies a topic with Spark's Kafka source and sink, as a batch and as a stream.

python -m tests.live.kafka_port.spark_program HOST:PORT INPUT BATCH_OUTPUT STREAM_OUTPUT FOLDER
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from tests.live.kafka_port.client_jars import spark_jars

STREAM_SECONDS_MAX = 120
PER_TRIGGER = 40


def main(address: str, source: str, batch_target: str, stream_target: str, folder: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, spark_jars())))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    servers = {"kafka.bootstrap.servers": address}
    reading = {
        **servers,
        "subscribe": source,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
    }
    batch = spark.read.format("kafka").options(**reading).load()
    columns = ("key", "value", "headers")
    batch.select("key", "value").write.format("kafka").options(**servers, topic=batch_target).save()
    stream = spark.readStream.format("kafka").options(
        **reading, maxOffsetsPerTrigger=PER_TRIGGER, includeHeaders="true"
    )
    query = (
        stream.load()
        .select(*columns)
        .writeStream.format("kafka")
        .options(**servers, topic=stream_target, checkpointLocation=folder)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(STREAM_SECONDS_MAX), "the stream has no end"
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
