"""The jars of a real Kafka broker: fetched once at set-up, by Spark's own resolution, and checked.

`python -m tests.live.kafka_jars` is what `make setup` runs. Users need none of them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyspark

from frazil.lake.jars import fetch

KAFKA = "org.apache.kafka:kafka_2.13:4.2.1"
"""Made with the Scala that Spark 4.1 brings: resolution leaves that out, so it is taken there."""
LOCK = Path(__file__).with_suffix(".lock")
"""Digest and name of every file: the broker, and all it needs."""
FOLDER = Path.home() / ".cache" / "frazil" / "kafka"
FROM_SPARK = (
    "scala-library-2.13.",
    "slf4j-api-",
    "log4j-slf4j2-impl-",
    "log4j-api-",
    "log4j-core-",
)
"""Scala, and what makes the broker say something when it fails."""


def locked() -> dict[str, str]:
    """File name -> what its SHA-256 must be."""
    lines = [line.split() for line in LOCK.read_text(encoding="utf-8").splitlines()]
    return {name: digest for digest, name in lines}


def class_path() -> str:
    """For Java. What comes with Spark comes first, as the parts of its logging fit together."""
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    found = [path for path in spark if path.name.startswith(FROM_SPARK)]
    assert len(found) == len(FROM_SPARK), f"Spark brings {found}"
    jars = [FOLDER / "jars" / name for name in locked()]
    missing = [path.name for path in jars if not path.is_file()]
    assert not missing, f"run `make setup` while there is a network; missing: {missing}"
    return ":".join(str(path) for path in [*found, *jars])


def resolve() -> None:
    """Fetch what is missing. Nothing but the locked files is accepted."""
    wrong = _wrong()
    if not wrong:
        return
    for path in wrong:
        path.unlink(missing_ok=True)  # resolution keeps a file that has the right name
    fetch(FOLDER, [KAFKA])
    wrong = _wrong()
    if wrong:
        raise SystemExit(f"these are not the files of {LOCK}: {wrong}; remove {FOLDER}")


def _wrong() -> list[Path]:
    def is_whole(path: Path, digest: str) -> bool:
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest

    places = {FOLDER / "jars" / name: digest for name, digest in locked().items()}
    return [path for path, digest in places.items() if not is_whole(path, digest)]


if __name__ == "__main__":
    resolve()
