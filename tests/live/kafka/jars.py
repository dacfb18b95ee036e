"""The jars of a real Kafka broker, fetched by Spark's dependency resolution and verified.

`make setup` runs `python -m tests.live.kafka.jars`. Users need none of them.
"""

from __future__ import annotations

from pathlib import Path

import pyspark

from frazil.lake.spark.jars import fetch
from tests.live.locked_jars import LockedJars

KAFKA = "org.apache.kafka:kafka_2.13:4.2.1"
"""Built for the Scala version of Spark 4.1. Resolution excludes Scala, so Spark's jar is used."""
JARS = LockedJars(
    lock=Path(__file__).with_suffix(".lock"), folder=Path.home() / ".cache" / "frazil" / "kafka"
)
"""The broker and its dependencies."""
FROM_SPARK = (
    "scala-library-2.13.",
    "slf4j-api-",
    "log4j-slf4j2-impl-",
    "log4j-api-",
    "log4j-core-",
)
"""Scala, and the logging libraries that print the broker's errors."""


def class_path() -> str:
    """Return the class path. Spark's jars come first: their logging libraries match each other."""
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    found = [path for path in spark if path.name.startswith(FROM_SPARK)]
    assert len(found) == len(FROM_SPARK), f"jars found in Spark: {found}"
    return ":".join(str(path) for path in [*found, *JARS.paths()])


if __name__ == "__main__":
    JARS.resolve(lambda: fetch(JARS.folder, [KAFKA]))
