"""The jars of Kafka Connect with its file connectors, and of Spark's Kafka source and sink. 30 MB.

`make setup` runs `python -m tests.live.kafka_port.client_jars`. Users need none of them.
"""

from __future__ import annotations

from pathlib import Path

from tests.live.kafka import jars as broker
from tests.live.locked_jars import LockedJars

KAFKA = "4.2.1"
SPARK = "4.1.3"
"""The newest of 4.1."""
MODULE = """\
<ivy-module version="2.0">
  <info organisation="frazil" module="kafka-clients"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
DEPENDENCY = """
    <dependency org="{organisation}" name="{name}" rev="{release}" conf="default->master,runtime"
                transitive="{is_transitive}"/>
"""
FOR_THE_SOURCE = {
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK): False,
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"): False,
    ("org.apache.commons", "commons-pool2", "2.12.1"): False,
    ("org.apache.kafka", "kafka-clients", "3.9.1"): False,
}
FOR_CONNECT = {
    ("org.apache.kafka", "connect-runtime", KAFKA): True,
    ("org.apache.kafka", "connect-file", "4.2.0"): False,
}
"""Coordinates, and whether with what they depend on. One module each: the two have different
versions of Kafka's client. Where a release differs, a later one is
not published."""
JARS = LockedJars(
    lock=Path(__file__).with_suffix(".lock"),
    folder=Path.home() / ".cache" / "frazil" / "kafka-connect-and-spark",
)
FOR_SPARK = ("spark-", "commons-pool2-", "kafka-clients-3")


def missing() -> str | None:
    """Return what is not there, for tests to be skipped; None if all is."""
    try:
        broker.class_path()
        JARS.paths()
    except AssertionError as error:
        return str(error)
    return None


def spark_jars() -> list[Path]:
    """Return the jars of Spark's Kafka source and sink."""
    return [path for path in JARS.paths() if path.name.split("_", 1)[1].startswith(FOR_SPARK)]


def connect_class_path() -> str:
    """Return the class path of a Connect worker. The broker has the jars that print errors."""
    spark = set(spark_jars())
    found = [str(path) for path in JARS.paths() if path not in spark]
    return ":".join([*found, broker.class_path()])


def _fetch() -> None:
    for coordinates in (FOR_THE_SOURCE, FOR_CONNECT):
        names = [
            DEPENDENCY.format(
                organisation=organisation,
                name=name,
                release=release,
                is_transitive=str(is_transitive).lower(),
            )
            for (organisation, name, release), is_transitive in coordinates.items()
        ]
        JARS.fetch_with_ivy(MODULE.format(dependencies="".join(names)))


if __name__ == "__main__":
    JARS.resolve(_fetch)
