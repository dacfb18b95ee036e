"""The jars of a real Kafka broker: fetched once at set-up, by Spark's own resolution, and checked.

`python -m tests.live.kafka.jars` is what `make setup` runs. Users need none of them.
"""

from __future__ import annotations

from pathlib import Path

import pyspark

from frazil.lake.spark.jars import fetch
from tests.live.locked_jars import LockedJars

KAFKA = "org.apache.kafka:kafka_2.13:4.2.1"
"""Made with the Scala that Spark 4.1 brings: resolution leaves that out, so it is taken there."""
JARS = LockedJars(
    lock=Path(__file__).with_suffix(".lock"), folder=Path.home() / ".cache" / "frazil" / "kafka"
)
"""The broker, and all it needs."""
FROM_SPARK = (
    "scala-library-2.13.",
    "slf4j-api-",
    "log4j-slf4j2-impl-",
    "log4j-api-",
    "log4j-core-",
)
"""Scala, and what makes the broker say something when it fails."""


def class_path() -> str:
    """For Java. What comes with Spark comes first, as the parts of its logging fit together."""
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    found = [path for path in spark if path.name.startswith(FROM_SPARK)]
    assert len(found) == len(FROM_SPARK), f"Spark brings {found}"
    return ":".join(str(path) for path in [*found, *JARS.paths()])


if __name__ == "__main__":
    JARS.resolve(lambda: fetch(JARS.folder, [KAFKA]))
