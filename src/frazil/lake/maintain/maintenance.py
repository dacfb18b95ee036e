"""Maintenance: removes expired rows, merges small files, expires old snapshots and deletes orphan
files.

Runs on the lake's thread, so never during an appender round. Heavy work runs as tasks on Spark, to
keep the process that receives telemetry free. Commits are made with PyIceberg and synced: Spark's
own procedures do not sync, and a power cut could leave the catalog with empty files
(docs/decisions/0011).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from frazil.errors import Conflict, Corrupt, FrazilError
from frazil.lake.append.commit import APPENDER, data_file_of
from frazil.lake.append.progress import LakeActivity, ReportActivity
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.loaded.clone_table import clone_warnings
from frazil.lake.maintain.clean_files import CleanFiles
from frazil.lake.maintain.compaction import CompactionGroup, first_step, groups_of
from frazil.lake.maintain.maintained import Maintained
from frazil.lake.maintain.row_condition import RowCondition, retention_condition
from frazil.lake.tables.promoted import promoted_fields
from frazil.lake.tables.properties import LOADED, TARGET_BYTES, is_keyed
from frazil.metrics import Counter
from frazil.model import Clock, Rand, SteadyTime
from frazil.settings import LakeConfig, RetentionRule

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from frazil.lake.maintain.expire_snapshots import SnapshotRetention
    from frazil.lake.maintain.merge_task import MergeResult
    from frazil.lake.spark.jobs import TaskRunner

logger = logging.getLogger(__name__)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TARGET = "write.target-file-size-bytes"
ATTEMPTS_MAX = 5
"""Attempts to merge files of a table that others keep changing."""
LISTED_MAX = 3
"""Files that a message names."""
SKIPPED_MAX = 10_000
"""Files remembered as not mergeable."""

JOINED = Counter("frazil.lake.files.joined", "Data files replaced by compaction, by table.")
ROWS_REMOVED = Counter(
    "frazil.lake.rows.removed", "Rows removed by retention or erasure, by table."
)
REMOVED = Counter("frazil.lake.files.removed", "Files deleted, by table and reason.")


class Maintenance:
    """Owned by the lake's thread. Its steps may run at any time, in any order."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        config: LakeConfig,
        do: TaskRunner,
        *,
        clock: Clock,
        rand: Rand,
        rules: Sequence[RetentionRule] = (),
        report: ReportActivity = lambda _: None,
        owns: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`owns` returns whether only this process appends to a table."""
        self._catalog = catalog
        self._rules = rules
        self._clean = CleanFiles()
        self._config = config
        self._do = do
        self._clock = clock
        self._rand = rand
        self._time = SteadyTime(clock)
        self._report = report
        self._owns = owns
        self._skipped: set[str] = set()
        self._compacted: dict[str, int] = {}
        """Table -> the snapshot in which nothing was left to merge."""

    def tables(self) -> list[str]:
        """Return our tables: those that an appender has taken over, and those loaded from files."""
        catalog, namespace = self._catalog(), self._config.namespace
        with catalog_calls(self._config):
            if not catalog.namespace_exists(namespace):
                return []
            names = sorted(name for _, name in catalog.list_tables(namespace))
        return [name for name in names if self._is_ours(name)]

    def _is_ours(self, name: str) -> bool:
        return not {APPENDER, LOADED}.isdisjoint(self._load(name).properties)

    def _is_loaded(self, name: str) -> bool:
        """Return whether a table is loaded from files: its partitions are not days of `time`."""
        return APPENDER not in self._load(name).properties

    def _is_keyed(self, name: str) -> bool:
        return is_keyed(self._load(name).properties)

    def all(self) -> list[Maintained]:
        """Run all steps on all tables until nothing is left to do. Errors go into `trouble`."""
        steps = (
            self._retain_all,
            self._compact_all,
            self.join_manifests,
            self.expire,
            self.remove_orphans,
        )
        return [self._run(name, steps) for name in self.tables()]

    def apply_retention(self) -> list[Maintained]:
        """Remove all expired rows, and everything on disk that still has them. Queries that read an
        older snapshot may fail."""
        names = {rule.table for rule in self._rules}
        steps = (self._retain_all, self.purge)
        return [self._run(name, steps) for name in self.tables() if name in names]

    def erase(self, conditions: Sequence[RowCondition]) -> list[Maintained]:
        """Remove the rows that match, and everything on disk that still has them. Queries that read
        an older snapshot may fail."""
        known = self.tables()
        return [
            self._run(each.table, (partial(self._erase_all, each), self.purge))
            for each in conditions
            if each.table in known
        ]

    def _run(self, name: str, steps: Sequence[Callable[[str], Maintained]]) -> Maintained:
        done = Maintained(table=name)
        for step in steps:
            try:
                done += step(name)
            except FrazilError as error:
                done += Maintained(table=name, trouble=(str(error),))
        return done

    def _compact_all(self, name: str) -> Maintained:
        done = Maintained(table=name)
        while not (step := self.compact(name, is_all=True)).is_nothing:
            done += step
        return done

    def _retain_all(self, name: str) -> Maintained:
        done = Maintained(table=name)
        while not (step := self.retain(name)).is_nothing:
            done += step
        return done

    def _erase_all(self, condition: RowCondition, name: str) -> Maintained:
        done = Maintained(table=name)
        clean = CleanFiles()
        while not (step := self._remove(name, condition, clean)).is_nothing:
            done += step
        return done

    def retain(self, name: str) -> Maintained:
        """Remove some expired rows; without any, expire the snapshots that still have some."""
        condition = retention_condition(self._rules, name, self._time.now_ms())
        if condition is None or self._is_loaded(name) or self._is_keyed(name):
            return Maintained(table=name)
        done = self._remove(name, condition, self._clean)
        if done.is_nothing and self._has_outdated(name, self._snapshots_kept()):
            return self.expire(name)
        return done

    def purge(self, name: str) -> Maintained:
        """Delete everything that may still have values of removed rows: other snapshots, their
        files, entries of removed files, and files of ours that no snapshot references. What is left
        is said in `trouble`."""
        done = Maintained(table=name)
        if self._may_have_removed_rows(name):
            from frazil.lake.maintain.replace_files import Replacement, replace_files

            # A snapshot without the entries of removed files, which have their column bounds.
            no_files = Replacement(old=(), new=(), commit_id=self._unique())
            replace_files(self._catalog(), self._full_name(name), no_files, clock=self._clock)
            done += self._expire(name, replace(self._snapshots_kept(), is_purge=True))
        done += self.remove_orphans(name, is_purge=True)
        clones = clone_warnings(self._catalog(), self._config, name)
        trouble = (*self._branches(name), *clones)
        if not trouble and self._may_have_removed_rows(name):
            trouble = ("another program has changed the table meanwhile; repeat this",)
        return done + Maintained(table=name, trouble=trouble)

    def count(self, condition: RowCondition, *, is_all: bool) -> tuple[int, int]:
        """Return how many rows match, and how many files have some, in the current snapshot; with
        `is_all`, in all snapshots."""
        from frazil.lake.maintain.remove_rows import count_rows

        if condition.table not in self.tables():
            return 0, 0
        with self._reporting(condition.table, "counting rows"):
            return count_rows(self._load(condition.table), condition, self._do, is_all=is_all)

    def _branches(self, name: str) -> tuple[str, ...]:
        """Return a sentence for each branch that may have removed rows."""
        from frazil.lake.maintain.expire_snapshots import branch_warnings

        return branch_warnings(self._load(name).metadata)

    def _may_have_removed_rows(self, name: str) -> bool:
        from frazil.lake.maintain.expire_snapshots import may_have_removed_rows

        return may_have_removed_rows(self._load(name), self._do)

    def _has_outdated(self, name: str, keep: SnapshotRetention) -> bool:
        from frazil.lake.maintain.expire_snapshots import outdated_snapshots

        return bool(outdated_snapshots(self._load(name).metadata, keep))

    def _remove(self, name: str, condition: RowCondition, clean: CleanFiles) -> Maintained:
        for _ in range(ATTEMPTS_MAX):
            try:
                with self._reporting(name, "removing rows"):
                    return self._try_remove(name, condition, clean)
            except Conflict as error:
                logger.info("removal retried", extra={"table": name, "reason": str(error)})
        raise Conflict(f"{name} was changed {ATTEMPTS_MAX} times while rows were being removed")

    def _try_remove(self, name: str, condition: RowCondition, clean: CleanFiles) -> Maintained:
        from frazil.lake.maintain.remove_rows import remove_some

        done = remove_some(
            self._catalog(),
            self._full_name(name),
            condition,
            clean,
            self._do,
            clock=self._clock,
            unique=self._unique,
        )
        ROWS_REMOVED.add(done.row_count, table=name)
        return Maintained(
            table=name,
            rows_removed=done.row_count,
            files_dropped=done.files_dropped,
            files_rewritten=done.files_rewritten,
            trouble=done.trouble,
        )

    def compact(self, name: str, *, is_all: bool = False) -> Maintained:
        """Merge some small files, if it pays; with `is_all`, also if it does not."""
        if self._is_keyed(name):
            with self._reporting(name, "compacting files"):
                return self._compact_keyed(name, is_all)
        compact = self._compact_loaded if self._is_loaded(name) else self._compact
        for _ in range(ATTEMPTS_MAX):
            try:
                with self._reporting(name, "compacting files"):
                    return compact(name, is_all)
            except Conflict as error:
                logger.info("compaction retried", extra={"table": name, "reason": str(error)})
        raise Conflict(f"{name} was changed {ATTEMPTS_MAX} times while its files were being merged")

    def join_manifests(self, name: str) -> Maintained:
        """Rewrite manifests if there are many small ones."""
        if self._is_loaded(name):
            return Maintained(table=name)
        if self._is_keyed(name):
            return self._join_keyed_manifests(name)
        from frazil.lake.maintain.replace_files import Replacement, count_scattered, replace_files

        count = count_scattered(self._load(name))
        if count:
            no_files = Replacement(old=(), new=(), commit_id=self._unique())
            with self._reporting(name, "merging manifests"):
                replace_files(self._catalog(), self._full_name(name), no_files, clock=self._clock)
        return Maintained(table=name, manifests_joined=count)

    def _compact_keyed(self, name: str, is_all: bool) -> Maintained:
        from frazil.lake.keyed.merge_files import merge_some

        done = merge_some(
            self._catalog(),
            self._full_name(name),
            self._do,
            clock=self._clock,
            unique=self._unique,
            is_all=is_all,
        )
        JOINED.add(done.old_files, table=name)
        return Maintained(
            table=name,
            files_joined=done.old_files,
            files_made=done.new_files,
            bytes_joined=done.old_bytes,
            bytes_made=done.new_bytes,
        )

    def _join_keyed_manifests(self, name: str) -> Maintained:
        from frazil.lake.keyed.commit import count_scattered
        from frazil.lake.keyed.merge_files import join_manifests

        count = count_scattered(self._load(name))
        if count:
            full_name = self._full_name(name)
            join_manifests(self._catalog(), full_name, clock=self._clock, unique=self._unique)
        return Maintained(table=name, manifests_joined=count)

    def expire(self, name: str) -> Maintained:
        """Tag the last snapshot of past days, and expire old snapshots. Raises `Conflict` if
        another program has changed a keyed table: its last snapshot of ours is needed."""
        if self._is_keyed(name):
            from frazil.lake.keyed.table import check_own

            check_own(self._load(name))
        return self._expire(name, self._snapshots_kept())

    def _snapshots_kept(self) -> SnapshotRetention:
        from frazil.lake.maintain.expire_snapshots import SnapshotRetention

        return SnapshotRetention(
            now_ms=self._time.now_ms(),
            age_ms=self._config.maintain_keep_hours * HOUR_MS,
            tag_days=self._config.maintain_tag_days,
        )

    def _expire(self, name: str, keep: SnapshotRetention) -> Maintained:
        from frazil.lake.maintain.expire_snapshots import expire

        with self._reporting(name, "expiring snapshots"):
            done = expire(self._catalog(), self._full_name(name), keep, self._do, clock=self._clock)
        REMOVED.add(done.file_count, table=name, reason="expired")
        return Maintained(
            table=name,
            tags_made=done.tags,
            tags_dropped=done.old_tags,
            snapshots_expired=done.snapshot_count,
            files_removed=done.file_count,
        )

    def remove_orphans(self, name: str, *, is_purge: bool = False) -> Maintained:
        """Delete old files that no snapshot references."""
        from frazil.lake.maintain.orphan_files import remove_orphans

        with self._reporting(name, "deleting orphan files"):
            done = remove_orphans(
                self._catalog(),
                self._full_name(name),
                self._do,
                now_ms=self._time.now_ms(),
                age_ms=self._config.maintain_orphan_hours * HOUR_MS,
                is_idle=is_purge and self._owns(name),
            )
        REMOVED.add(done.file_count, table=name, reason="orphan")
        return Maintained(
            table=name,
            orphans_removed=done.file_count,
            orphan_bytes=done.size_bytes,
            trouble=self._young(done.young) if is_purge else (),
        )

    def _young(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return a sentence about files that may be of another writer."""
        if not paths:
            return ()
        hours = self._config.maintain_orphan_hours
        return (
            f"{len(paths)} files may have removed rows and belong to no snapshot, but another "
            f"program may be about to commit them: {', '.join(paths[:LISTED_MAX])}; they are "
            f"deleted when they are {hours} hours old. Delete them now if no program needs them",
        )

    @contextmanager
    def _reporting(self, name: str, step: str) -> Iterator[None]:
        """Report this step as the current activity."""
        begun_ms = self._clock.wall_ms()
        self._report(LakeActivity(work="maintenance", step=step, table=name, begun_ms=begun_ms))
        try:
            yield
        finally:
            self._report(None)

    def _compact(self, name: str, is_all: bool) -> Maintained:
        from frazil.lake.maintain.replace_files import Replacement, replace_files

        done: list[MergeResult] = []
        table = self._load(name)
        # Files that turn out not to be mergeable are skipped in the next pass.
        while not done and (groups := self._groups(name, table, is_all)):
            done = [each for each in self._merge(name, table, first_step(groups)) if each.file]
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

    def _compact_loaded(self, name: str, is_all: bool) -> Maintained:
        from frazil.lake.maintain.loaded_compaction import compact_loaded

        table = self._load(name)
        snapshot_id = table.metadata.current_snapshot_id
        state = hash((snapshot_id, table.metadata.default_sort_order_id))
        if self._compacted.get(name) == state and not is_all:
            return Maintained(table=name)
        done = compact_loaded(
            self._catalog(),
            table,
            self._do,
            skipped=self._skipped,
            unique=self._unique(),
            clock=self._clock,
            is_all=is_all,
        )
        self._skip(done.skipped)
        if not done.old:
            self._compacted[name] = state
            return Maintained(table=name)
        JOINED.add(len(done.old), table=name)
        return Maintained(
            table=name,
            files_joined=len(done.old),
            files_made=len(done.new),
            bytes_joined=sum(part.size_bytes for part in done.old),
            bytes_made=sum(file.size_bytes for file in done.new),
        )

    def _groups(self, name: str, table: Table, is_all: bool) -> list[CompactionGroup]:
        """Return the groups of files to merge."""
        from frazil.lake.maintain.reachable_files import parts_in
        from frazil.lake.tables.properties import PARTITION_COLUMN

        snapshot = table.current_snapshot()
        if snapshot is None or (self._compacted.get(name) == snapshot.snapshot_id and not is_all):
            return []
        time_id = table.schema().find_field(PARTITION_COLUMN).field_id
        parts = parts_in(snapshot.manifests(table.io), table.io, self._do, time_id=time_id)
        groups = groups_of(
            [part for part in parts if part.path not in self._skipped],
            today=self._time.now_ms() // DAY_MS,
            target_bytes=int(table.properties.get(TARGET, TARGET_BYTES)),
            is_all=is_all,
        )
        if not groups:
            self._compacted[name] = snapshot.snapshot_id
        return groups

    def _merge(
        self, name: str, table: Table, groups: Sequence[CompactionGroup]
    ) -> list[MergeResult]:
        """Run merge tasks. Files that cannot be merged are skipped from now on."""
        from frazil.lake.maintain.merge_task import MergeTask, try_merge

        work = [
            MergeTask(
                table=name,
                group=group,
                location=table.location(),
                name=f"{self._unique()[:12]}-{at:08}",
                promoted=promoted_fields(table),
                io=table.io,
            )
            for at, group in enumerate(groups)
        ]
        merged = []
        for task, result in zip(work, self._do(try_merge, work), strict=True):
            if isinstance(result, Corrupt):
                logger.error("data file damaged", extra={"table": name, "reason": str(result)})
                self._skip([result.path])
            else:
                merged.append(result)
                paths = {part.path for part in result.group.parts}
                self._skip([part.path for part in task.group.parts if part.path not in paths])
        return merged

    def _skip(self, paths: Sequence[str]) -> None:
        if len(self._skipped) + len(paths) > SKIPPED_MAX:
            self._skipped.clear()
        self._skipped.update(paths)

    def _load(self, name: str) -> Table:
        with catalog_calls(self._config):
            return self._catalog().load_table(self._full_name(name))

    def _full_name(self, name: str) -> str:
        return f"{self._config.namespace}.{name}"

    def _unique(self) -> str:
        """Return a random 128-bit name."""
        return f"{self._rand.getrandbits(128):032x}"
