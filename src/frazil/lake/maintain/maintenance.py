"""Maintenance: what tables need besides new rows. Small files are joined, old snapshots go, and
what nobody names is taken away.

Belongs to the lake's thread, so it never runs beside a round of the appender. What is heavy is done
by tasks on Spark: the process that takes telemetry in has something else to do. What is committed
is committed by PyIceberg, and synced: Spark's own procedures would leave the catalog with names of
files that a power cut can empty (docs/decisions/0011).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from frazil.errors import Conflict, Corrupt, FrazilError
from frazil.lake.append.appender import data_file_of
from frazil.lake.append.commit import APPENDER
from frazil.lake.append.progress import LakeActivity
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.config import LakeConfig
from frazil.lake.maintain.compaction import CompactionGroup, groups_of
from frazil.metrics import Counter
from frazil.model import Clock, MiB, Rand, SteadyTime, doc

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from frazil.lake.maintain.merge_task import MergeResult
    from frazil.lake.spark.jobs import TaskRunner

logger = logging.getLogger(__name__)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
STEP_BYTES_MAX = 128 * MiB
"""Of data files that are joined at once: some seconds on a small machine. One group may be more."""
TARGET_BYTES = 128 * MiB
TARGET = "write.target-file-size-bytes"
TRIES = 5
"""When others change a table again and again while its files are joined."""
LEFT_MAX = 10_000
"""Files that are remembered as not to be joined."""

JOINED = Counter("frazil.lake.files.joined", "Data files that compaction replaced, by table.")
REMOVED = Counter("frazil.lake.files.removed", "Files that were taken away, by table and reason.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """Result of maintaining one table."""

    table: str
    files_joined: int = 0
    files_made: int = 0
    bytes_joined: int = 0
    bytes_made: int = 0
    manifests_joined: int = 0
    tags_made: tuple[str, ...] = ()
    tags_dropped: tuple[str, ...] = ()
    snapshots_expired: int = 0
    files_removed: Annotated[int, doc("Files of expired snapshots only.")] = 0
    orphans_removed: int = 0
    orphan_bytes: int = 0
    trouble: Annotated[tuple[str, ...], doc("Steps that failed, and why.")] = ()

    def __add__(self, other: Maintained) -> Maintained:
        """Both, one after the other."""
        assert self.table == other.table, "of one table"
        names = [field.name for field in fields(self) if field.name != "table"]
        both = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Maintained(table=self.table, **both)

    @property
    def is_nothing(self) -> bool:
        return self == Maintained(table=self.table)

    def to_dict(self) -> dict[str, Any]:
        """For people and programs that ask what was done."""
        return asdict(self)


class Maintenance:
    """Belongs to the lake's thread. Each of its works may be done at any time, in any order."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        config: LakeConfig,
        do: TaskRunner,
        *,
        clock: Clock,
        rand: Rand,
    ) -> None:
        self._catalog = catalog
        self._config = config
        self._do = do
        self._clock = clock
        self._rand = rand
        self._time = SteadyTime(clock)
        self.doing: LakeActivity | None = None
        """What is done now, and to which table; None when nothing is."""
        self._left: set[str] = set()
        self._settled: dict[str, int] = {}
        """Of which snapshot of a table it is known that no files of it are to be joined."""

    def tables(self) -> list[str]:
        """Ours: those that an appender has taken over."""
        catalog, namespace = self._catalog(), self._config.namespace
        with catalog_calls(self._config):
            if not catalog.namespace_exists(namespace):
                return []
            names = sorted(name for _, name in catalog.list_tables(namespace))
        return [name for name in names if APPENDER in self._load(name).properties]

    def all(self) -> list[Maintained]:
        """Do everything to every table until there is nothing left to do. What fails is told."""
        return [self._all(name) for name in self.tables()]

    def _all(self, name: str) -> Maintained:
        done = Maintained(table=name)
        for work in (self._compact_whole, self.join_manifests, self.expire, self.remove_orphans):
            try:
                done += work(name)
            except FrazilError as error:
                done += Maintained(table=name, trouble=(str(error),))
        return done

    def _compact_whole(self, name: str) -> Maintained:
        done = Maintained(table=name)
        while not (some := self.compact(name, is_all=True)).is_nothing:
            done += some
        return done

    def compact(self, name: str, *, is_all: bool = False) -> Maintained:
        """Join some small files, as far as that pays. Nothing is done when there are none."""
        for _ in range(TRIES):
            try:
                with self._told(name, "joins files"):
                    return self._compact(name, is_all)
            except Conflict as error:
                logger.info("files are joined anew", extra={"table": name, "reason": str(error)})
        raise Conflict(f"{name} was changed by others {TRIES} times while its files were joined")

    def join_manifests(self, name: str) -> Maintained:
        """Write manifests anew when there are many small ones."""
        from frazil.lake.maintain.replace_files import Replacement, count_scattered, replace_files

        count = count_scattered(self._load(name))
        if count:
            nothing = Replacement(old=(), new=(), commit_id=self._unique())
            with self._told(name, "joins manifests"):
                replace_files(self._catalog(), self._full_name(name), nothing, clock=self._clock)
        return Maintained(table=name, manifests_joined=count)

    def expire(self, name: str) -> Maintained:
        """Tag the days that are over, and let old snapshots go."""
        from frazil.lake.maintain.expire_snapshots import SnapshotRetention, expire

        keep = SnapshotRetention(
            now_ms=self._time.now_ms(),
            age_ms=self._config.maintain_keep_hours * HOUR_MS,
            tag_days=self._config.maintain_tag_days,
        )
        with self._told(name, "lets old snapshots go"):
            done = expire(self._catalog(), self._full_name(name), keep, self._do, clock=self._clock)
        REMOVED.add(done.file_count, table=name, reason="expired")
        return Maintained(
            table=name,
            tags_made=done.tags,
            tags_dropped=done.old_tags,
            snapshots_expired=done.snapshot_count,
            files_removed=done.file_count,
        )

    def remove_orphans(self, name: str) -> Maintained:
        """Take away old files that no snapshot names."""
        from frazil.lake.maintain.orphan_files import remove_orphans

        with self._told(name, "removes files that nobody names"):
            done = remove_orphans(
                self._catalog(),
                self._full_name(name),
                self._do,
                now_ms=self._time.now_ms(),
                age_ms=self._config.maintain_orphan_hours * HOUR_MS,
            )
        REMOVED.add(done.file_count, table=name, reason="orphan")
        return Maintained(table=name, orphans_removed=done.file_count, orphan_bytes=done.size_bytes)

    @contextmanager
    def _told(self, name: str, step: str) -> Iterator[None]:
        """While this goes on, whoever looks is told so."""
        begun_ms = self._clock.wall_ms()
        self.doing = LakeActivity(work="maintenance", step=step, table=name, begun_ms=begun_ms)
        try:
            yield
        finally:
            self.doing = None

    def _compact(self, name: str, is_all: bool) -> Maintained:
        from frazil.lake.maintain.replace_files import Replacement, replace_files

        done: list[MergeResult] = []
        table = self._load(name)
        # Files that cannot be joined are known after the first attempt.
        while not done and (groups := self._groups(name, table, is_all)):
            done = [each for each in self._merge(name, table, _some(groups)) if each.file]
        if not done:
            return Maintained(table=name)
        old = [part for each in done for part in each.group.parts]
        new = [data_file_of(each.file, table) for each in done if each.file is not None]
        change = Replacement(old=old, new=new, commit_id=self._unique())
        replace_files(self._catalog(), self._full_name(name), change, clock=self._clock)
        JOINED.add(len(old), table=name)
        return Maintained(
            table=name,
            files_joined=len(old),
            files_made=len(new),
            bytes_joined=sum(part.size_bytes for part in old),
            bytes_made=sum(file.file_size_in_bytes for file in new),
        )

    def _groups(self, name: str, table: Table, is_all: bool) -> list[CompactionGroup]:
        """What is to be joined now."""
        from frazil.lake.maintain.reachable_files import parts_in
        from frazil.lake.tables.properties import PARTITION_COLUMN

        snapshot = table.current_snapshot()
        if snapshot is None or (self._settled.get(name) == snapshot.snapshot_id and not is_all):
            return []
        time_id = table.schema().find_field(PARTITION_COLUMN).field_id
        parts = parts_in(snapshot.manifests(table.io), table.io, self._do, time_id=time_id)
        groups = groups_of(
            [part for part in parts if part.path not in self._left],
            today=self._time.now_ms() // DAY_MS,
            target_bytes=int(table.properties.get(TARGET, TARGET_BYTES)),
            is_all=is_all,
        )
        if not groups:
            self._settled[name] = snapshot.snapshot_id
        return groups

    def _merge(
        self, name: str, table: Table, groups: Sequence[CompactionGroup]
    ) -> list[MergeResult]:
        """Have tasks write the new files. What cannot be joined is left alone from now on."""
        from frazil.lake.maintain.merge_task import MergeTask, try_merge

        work = [
            MergeTask(
                table=name,
                group=group,
                location=table.location(),
                name=f"{self._unique()[:12]}-{at:08}",
                io=table.io,
            )
            for at, group in enumerate(groups)
        ]
        merged = []
        for each, answer in zip(work, self._do(try_merge, work), strict=True):
            if isinstance(answer, Corrupt):
                logger.error("a file is damaged", extra={"table": name, "reason": str(answer)})
                self._leave([answer.path])
            else:
                merged.append(answer)
                joined = {part.path for part in answer.group.parts}
                self._leave([part.path for part in each.group.parts if part.path not in joined])
        return merged

    def _leave(self, paths: Sequence[str]) -> None:
        if len(self._left) + len(paths) > LEFT_MAX:
            self._left.clear()
        self._left.update(paths)

    def _load(self, name: str) -> Table:
        with catalog_calls(self._config):
            return self._catalog().load_table(self._full_name(name))

    def _full_name(self, name: str) -> str:
        return f"{self._config.namespace}.{name}"

    def _unique(self) -> str:
        """A name that nobody else has."""
        return f"{self._rand.getrandbits(128):032x}"


def _some(groups: Sequence[CompactionGroup]) -> list[CompactionGroup]:
    """As many as are joined at once."""
    chosen: list[CompactionGroup] = []
    size = 0
    for group in groups:
        if chosen and size + group.size_bytes > STEP_BYTES_MAX:
            break
        chosen.append(group)
        size += group.size_bytes
    return chosen
