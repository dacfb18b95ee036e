"""What an operator may set for the lake. Unknown keys and values that cannot work are refused."""

from __future__ import annotations

import re

import msgspec

from frazil.errors import Malformed
from frazil.lake.kafka_config import KafkaConfig
from frazil.model import GiB, MiB

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Names that need no quotes in any engine that reads the tables."""

DRIVER_MEMORY_BYTES_MIN = 512 * MiB
"""Spark refuses to start with a heap below 450 MiB."""
WORKER_MEMORY_BYTES_MIN = 2 * GiB
"""The limit counts addresses, not pages, and the libraries of a task reserve 1.6 GiB of them before
the first row."""

ORPHAN_HOURS_MIN = 24
"""Whatever is being written now must not be taken for an orphan, whoever writes it."""

OWN_SETTINGS = {
    "spark.master": "lake.master",
    "spark.driver.memory": "lake.driver_memory_bytes",
    "spark.executor.pyspark.memory": "lake.worker_memory_bytes",
}
"""Settings of Spark that have a name of ours: there is one place to look for each."""
RESOLVING_SETTINGS = frozenset(
    {"spark.jars.packages", "spark.jars.repositories", "spark.jars.ivy", "spark.jars.ivySettings"}
)
"""Settings that would have Spark fetch jars at every start."""


class LakeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the lake."""

    enabled: bool = True
    """A node fills the tables by itself. Without, its log keeps everything."""
    flush_bytes: int = 128 * MiB
    """Rows are committed when the log holds so many bytes that are not."""
    flush_age_ms: int = 60_000
    """They are also committed when the first of them has waited so long."""
    catalog: dict[str, str] = msgspec.field(default_factory=dict)
    """Properties of the catalog, as PyIceberg names them. Without any it is an SQLite file in the
    data folder."""
    catalog_name: str = "frazil"
    """What Spark calls the catalog: the first part of a table's name there."""
    namespace: str = "frazil"
    """Where in the catalog the tables are. It is made when it is not there."""
    warehouse: str | None = None
    """Where the tables' files are: a folder or a URI. Without, it is one in the data folder."""
    master: str = "local[2]"
    """Where Spark runs its tasks: threads of one process here, or a cluster."""
    driver_memory_bytes: int = GiB
    """The heap of Spark's process. With what Java keeps beside it, the process may take 1 GiB more
    than this."""
    worker_memory_bytes: int = 4 * GiB
    """Addresses that one Python process of a task may use."""
    slice_bytes: int = 64 * MiB
    """How much of the log one task of Spark takes, about."""
    topics: list[str] = msgspec.field(default_factory=lambda: ["*"])
    """Which topics besides telemetry become tables: their names, in which `*` stands for any text.
    """
    kafka: KafkaConfig | None = None
    """Where `frazil appender` fills the tables from. A node fills them from its own log."""
    question_timeout_ms: int = 600_000
    """How long a query on Spark may run."""
    maintain_enabled: bool = True
    """Small files are joined and old snapshots go by themselves, while tables are being filled."""
    maintain_interval_ms: int = 600_000
    """How often to look for small files to be joined."""
    maintain_keep_hours: int = 6
    """Snapshots younger than this stay, and with them what queries and readers may still hold."""
    maintain_tag_days: int = 30
    """The last snapshot of a day has a tag, and stays for so many days."""
    maintain_orphan_hours: int = 72
    """Files that no snapshot names are removed when they are older than this."""
    jars: str | None = None
    """The folder of the jars. Without, it is one in the user's cache."""
    spark: dict[str, str] = msgspec.field(default_factory=dict)
    """Any other setting of Spark; stronger than ours."""

    def __post_init__(self) -> None:
        for name in ("catalog_name", "namespace"):
            if not NAME.fullmatch(getattr(self, name)):
                raise Malformed(
                    f"lake.{name} is {getattr(self, name)!r}; it must be a lower-case letter, then "
                    "at most 62 lower-case letters, digits and underscores"
                )
        self._check_least("driver_memory_bytes", DRIVER_MEMORY_BYTES_MIN)
        self._check_least("worker_memory_bytes", WORKER_MEMORY_BYTES_MIN)
        self._check_least("maintain_tag_days", 0)
        self._check_least("maintain_orphan_hours", ORPHAN_HOURS_MIN)
        for name in (
            "flush_bytes",
            "flush_age_ms",
            "slice_bytes",
            "question_timeout_ms",
            "maintain_interval_ms",
            "maintain_keep_hours",
        ):
            self._check_least(name, 1)
        for name in self.spark:
            _check_setting(name)

    def _check_least(self, name: str, least: int) -> None:
        if getattr(self, name) < least:
            raise Malformed(f"lake.{name} is {getattr(self, name)}; it must be at least {least}")

    @property
    def is_local(self) -> bool:
        """Do the tasks run in Spark's own process, on this machine?"""
        return self.master == "local" or self.master.startswith("local[")


def _check_setting(name: str) -> None:
    if name in OWN_SETTINGS:
        raise Malformed(f"lake.spark has {name}; set {OWN_SETTINGS[name]} instead")
    if name in RESOLVING_SETTINGS:
        raise Malformed(
            f"lake.spark has {name}, but no start may wait for the network; fetch the jars "
            "yourself and name their files in spark.jars"
        )
    if not name.startswith("spark."):
        raise Malformed(f"lake.spark has {name!r}; settings of Spark begin with 'spark.'")
