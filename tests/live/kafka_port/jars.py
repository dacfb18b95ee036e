"""Kafka's command-line tools, and those of the release whose clients Spark 4.1 brings. 15 MB.

`make setup` runs `python -m tests.live.kafka_port.jars`. What they depend on are the jars of the
broker, see tests/live/kafka/jars.py. Users need none of them.
"""

from __future__ import annotations

from pathlib import Path

from tests.live.kafka import jars as broker
from tests.live.locked_jars import LockedJars

RELEASES = {
    "4.2.1": ("kafka-tools",),
    "3.9.1": ("kafka-clients", "kafka-server-common", "kafka-tools"),
}
"""Jars by release. The broker has the others of its own release."""
MODULE = """\
<ivy-module version="2.0">
  <info organisation="frazil" module="kafka-tools"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
DEPENDENCY = """
    <dependency org="org.apache.kafka" name="{name}" rev="{release}" transitive="false"
                conf="default->master"/>
"""
JARS = LockedJars(
    lock=Path(__file__).with_suffix(".lock"),
    folder=Path.home() / ".cache" / "frazil" / "kafka-tools",
)


def missing() -> str | None:
    """Return what is not there, for tests to be skipped; None if all is."""
    try:
        broker.class_path()
        JARS.paths()
    except AssertionError as error:
        return str(error)
    return None


def class_path(release: str) -> str:
    """Return the class path of a release. Its jars come before those of the broker."""
    found = [str(path) for path in JARS.paths() if path.name.endswith(f"-{release}.jar")]
    assert len(found) == len(RELEASES[release]), f"jars of Kafka {release}: {found}"
    return ":".join([*found, broker.class_path()])


def _fetch() -> None:
    """One release after the other: Ivy takes one version of each jar."""
    for release, artifacts in RELEASES.items():
        names = [DEPENDENCY.format(name=name, release=release) for name in artifacts]
        JARS.fetch_with_ivy(MODULE.format(dependencies="".join(names)))


if __name__ == "__main__":
    JARS.resolve(_fetch)
