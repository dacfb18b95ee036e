"""LakeConfig: settings of the lake."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import GiB, MiB, doc, require_at_least
from frazil.settings.kafka import KafkaConfig

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Names that need no quotes in any engine that reads the tables."""

DRIVER_MEMORY_BYTES_MIN = 512 * MiB
"""Spark refuses to start with a heap below 450 MiB."""
WORKER_MEMORY_BYTES_MIN = 2 * GiB
"""The limit counts address space, not pages; the libraries of a task reserve 1.6 GiB of it before
the first row."""

ORPHAN_HOURS_MIN = 24
"""Files that any engine is writing now must not be taken for orphans."""

OWN_SETTINGS = {
    "spark.master": "lake.master",
    "spark.driver.memory": "lake.driver_memory_bytes",
    "spark.executor.pyspark.memory": "lake.worker_memory_bytes",
}
"""Spark settings that must be set by our own setting, so that each is set in one place."""
RESOLVING_SETTINGS = frozenset(
    {"spark.jars.packages", "spark.jars.repositories", "spark.jars.ivy", "spark.jars.ivySettings"}
)
"""Spark settings that would fetch jars at every start."""


class LakeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the lake."""

    enabled: Annotated[
        bool, doc("Append to the Iceberg tables. If off, the log keeps everything.")
    ] = True
    flush_bytes: Annotated[
        int, doc("Commit when the log holds this many bytes that are not in the lake.")
    ] = 128 * MiB
    flush_age_ms: Annotated[
        int, doc("Also commit when the first uncommitted row has waited this long.")
    ] = 60_000
    catalog: Annotated[
        dict[str, str],
        doc("Catalog properties, as in PyIceberg. If empty, an SQLite file in the data folder."),
    ] = msgspec.field(default_factory=dict)
    catalog_name: Annotated[
        str, doc("Name of the catalog in Spark: the first part of a table name there.")
    ] = "frazil"
    namespace: Annotated[
        str, doc("Namespace of the tables in the catalog. Created if missing.")
    ] = "frazil"
    warehouse: Annotated[
        str | None,
        doc("Folder or URI of the table files. If not set, a folder in the data folder."),
    ] = None
    master: Annotated[str, doc("Spark master: threads of one local process, or a cluster.")] = (
        "local[2]"
    )
    driver_memory_bytes: Annotated[
        int, doc("Heap of the Spark process, which may take 1 GiB more for the rest of Java.")
    ] = GiB
    worker_memory_bytes: Annotated[int, doc("Address space of one Python process of a task.")] = (
        4 * GiB
    )
    slice_bytes: Annotated[int, doc("About how much of the log one Spark task reads.")] = 64 * MiB
    topics: Annotated[
        list[str], doc("Topics besides telemetry that become tables; `*` matches any text.")
    ] = msgspec.field(default_factory=lambda: ["*"])
    kafka: KafkaConfig | None = None
    question_timeout_ms: Annotated[int, doc("Timeout of a query on Spark.")] = 600_000
    questions_max: Annotated[int, doc("Queries on Spark at the same time; more are refused.")] = 2
    maintain_enabled: Annotated[
        bool, doc("Compact small files and expire old snapshots while tables are filled.")
    ] = True
    maintain_interval_ms: Annotated[int, doc("How often to look for small files to compact.")] = (
        600_000
    )
    maintain_keep_hours: Annotated[
        int, doc("Keep younger snapshots, which queries and readers may still use.")
    ] = 6
    maintain_tag_days: Annotated[
        int, doc("Tag the last snapshot of each day and keep it for this many days.")
    ] = 30
    maintain_orphan_hours: Annotated[
        int, doc("Delete files older than this that no snapshot references.")
    ] = 72
    jars: Annotated[
        str | None, doc("Folder of the jars. If not set, a folder in the user's cache.")
    ] = None
    spark: Annotated[
        dict[str, str], doc("Any other Spark setting. Overrides the ones Frazil sets.")
    ] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("catalog_name", "namespace"):
            if not NAME.fullmatch(getattr(self, name)):
                raise InvalidSetting(
                    f"lake.{name} is {getattr(self, name)!r}; it must be a lower-case letter, then "
                    "at most 62 lower-case letters, digits and underscores",
                    f"lake.{name}",
                )
        require_at_least(DRIVER_MEMORY_BYTES_MIN, "lake", self, ("driver_memory_bytes",))
        require_at_least(WORKER_MEMORY_BYTES_MIN, "lake", self, ("worker_memory_bytes",))
        require_at_least(ORPHAN_HOURS_MIN, "lake", self, ("maintain_orphan_hours",))
        require_at_least(0, "lake", self, ("maintain_tag_days",))
        names = (name for name in self.__struct_fields__ if name != "maintain_tag_days")
        require_at_least(1, "lake", self, names)
        for name in self.spark:
            _check_setting(name)

    @property
    def is_local(self) -> bool:
        """Whether tasks run in the Spark process itself, on this machine."""
        return self.master == "local" or self.master.startswith("local[")


def _check_setting(name: str) -> None:
    setting = f"lake.spark.{name}"
    if name in OWN_SETTINGS:
        raise InvalidSetting(
            f"lake.spark contains {name}; set {OWN_SETTINGS[name]} instead", setting
        )
    if name in RESOLVING_SETTINGS:
        raise InvalidSetting(
            f"lake.spark contains {name}, which makes every start wait for the network; download "
            "the jars and list their files in spark.jars",
            setting,
        )
    if not name.startswith("spark."):
        raise InvalidSetting(
            f"lake.spark contains {name!r}; Spark settings begin with 'spark.'", setting
        )
