"""Freezer: brings keyed tables in the lake from one offset to a later one, exactly.

A round of one table:

1. begin    read offsets and row numbers from the table, the only source of truth
2. changes  row versions made since, and which older ones died, up to one offset per partition
3. hand     them over in files that tasks map
4. run      tasks write data files, and one delete file for each data file with dead rows: those of
            a small round here, others in one job on Spark
5. check    every death was found in exactly one data file
6. commit   dead letters first; then data files, delete files, offsets and row numbers, on exactly
            the snapshot of 1
7. publish  read the table back and tell the log that it may trim

After a failure at any step the next round begins at 1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frazil import tracing
from frazil.errors import Conflict, FrazilError, Unavailable, Unknown
from frazil.lake.append.appender import ROWS, Appended, Covered
from frazil.lake.append.commit import check_owner, check_topics, data_file_of, take_over
from frazil.lake.append.dead_letters import UnfitRecords
from frazil.lake.append.progress import LakeActivity, ReportActivity
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.files.writer import WrittenFile
from frazil.lake.keyed.commit import KeyedChange, commit_change, deletes_file_of
from frazil.lake.keyed.definition import KeyedDefinition
from frazil.lake.keyed.delete_task import DeleteResult, DeleteRowsTask
from frazil.lake.keyed.handoff import Handoff, clear, write_handoff
from frazil.lake.keyed.row_positions import PositionCache
from frazil.lake.keyed.schema import layout_of
from frazil.lake.keyed.snapshot_files import KeyedFile, ManifestCache, snapshot_files
from frazil.lake.keyed.source import FrozenPosition, KeyedSource, PartitionChanges
from frazil.lake.keyed.table import check_own, ensure_keyed_table, positions_of
from frazil.lake.keyed.tasks import FreezeResult, FreezeTask, grouped, run_group, run_tasks
from frazil.lake.keyed.write_task import WriteRowsTask
from frazil.model import Clock, GiB, MiB, Rand, TopicPartition
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from frazil.lake.spark.jobs import TaskRunner

logger = logging.getLogger(__name__)

ROUND_BYTES_MAX = GiB
"""Bytes of rows in one round; `lake.flush_bytes` while the disk is short of space."""
TASK_BYTES = 128 * MiB
"""Bytes of rows in memory that one task sorts and writes to one file."""
SMALL_BYTES_MAX = 16 * MiB
SMALL_ROWS_MAX = 12_000_000
SMALL_FILES_MAX = 64
"""A round up to these limits runs in this process: rows to write, in memory; rows of the data files
with deaths, whose positions fit in the cache; such files. About half a second at most, of which
little holds the interpreter's lock."""
SetAside = Callable[[Sequence[UnfitRecords]], int]
"""Commits dead letters, and returns how many are new."""
ATTEMPTS_MAX = 3
"""Rounds that are planned again because the table has changed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    """A planned round of one table."""

    definition: KeyedDefinition
    table: Table
    begins: dict[int, FrozenPosition]
    changes: Sequence[PartitionChanges]
    files: Sequence[KeyedFile]
    manifests: ManifestCache


class Freezer:
    """Owned by the lake's thread. If several are open on the same tables, only the last one opened
    commits; the others are fenced."""

    def __init__(
        self,
        source: KeyedSource,
        catalog: Catalog,
        config: LakeConfig,
        do: TaskRunner,
        folder: Path,
        *,
        clock: Clock,
        rand: Rand,
        report: ReportActivity = lambda _: None,
        is_disk_short: Callable[[], bool] = lambda: False,
        set_aside: SetAside = lambda _: 0,
    ) -> None:
        """`folder` is for the files of the hand-off, and emptied."""
        self._set_aside = set_aside
        self._source = source
        self._catalog = catalog
        self._config = config
        self._do = do
        self._folder = folder
        self._clock = clock
        self._rand = rand
        self._report = report
        self._is_disk_short = is_disk_short
        self._name = self._unique()
        self._task_count = 0
        self._opened: dict[str, KeyedDefinition] = {}
        """Tables that were created, brought up to date and taken over."""
        self._offsets: dict[str, dict[int, int]] = {}
        """Offsets of the tables, as of the last look at them."""
        self._manifests: dict[str, ManifestCache] = {}
        self._positions = PositionCache()
        clear(folder)

    @property
    def pending_bytes(self) -> int:
        """Estimated bytes of changes that are durable and not in the tables."""
        return sum(
            self._source.pending_bytes(each, self._known_offsets(each))
            for each in self._source.tables()
        )

    def owns(self, table: str) -> bool:
        """Return whether this freezer has taken a table over."""
        return table in self._opened

    def freeze_all(self) -> Iterator[Appended]:
        """Freeze all that is durable now and yield the commits. Every table is tried; then the
        first error is raised."""
        first: FrazilError | None = None
        for definition in self._source.tables():
            try:
                yield from self._freeze_until(definition, self._source.ends(definition))
            except Unknown:
                continue  # dropped meanwhile
            except FrazilError as error:
                first = first or error
        if first is not None:
            raise first

    def _freeze_until(
        self, definition: KeyedDefinition, ends: Mapping[int, int]
    ) -> Iterator[Appended]:
        """Freeze until the table has everything below these offsets."""
        if self._opened.get(definition.name) != definition:
            self._publish(definition, self._open(definition))
        while any(self._known_offsets(definition).get(n, 0) < end for n, end in ends.items()):
            done = self.freeze(definition)
            if done is None:
                raise Unavailable(
                    f"the rows of {definition.name} lag behind its log, which ends at "
                    f"{dict(ends)}: not all changes were frozen; retry"
                )
            yield done

    def freeze(self, definition: KeyedDefinition) -> Appended | None:
        """Run one round of a table: one commit, or None if nothing has changed.

        Raises `Conflict` if another program has changed the table.
        """
        self._report(
            LakeActivity(
                work="round",
                step="freezing",
                table=definition.name,
                begun_ms=self._clock.wall_ms(),
            )
        )
        try:
            with tracing.span("lake.freeze") as span:
                for attempt in range(ATTEMPTS_MAX):
                    try:
                        done = self._try(definition)
                        break
                    except Conflict as error:
                        if attempt == ATTEMPTS_MAX - 1:
                            raise
                        logger.info("freeze planned again", extra={"reason": str(error)})
                if done is None:
                    span.drop()
                else:
                    span.note(table=done.table, rows=done.row_count)
                return done
        finally:
            clear(self._folder)
            self._report(None)

    def _try(self, definition: KeyedDefinition) -> Appended | None:
        planned = self._planned(definition)
        if not planned.changes:
            self._publish(definition, planned.table)
            return None
        bytes_max = min(TASK_BYTES, self._round_bytes())
        handoff = write_handoff(self._folder, planned.changes, bytes_max)
        results = self._run(
            self._write_tasks(planned, handoff), self._delete_tasks(planned, handoff)
        )
        written = [each for each in results if isinstance(each, WrittenFile)]
        deleted = [each for each in results if isinstance(each, DeleteResult)]
        _check_written(handoff, written)
        _check_found(planned, handoff, deleted)
        return self._commit(planned, written, deleted)

    def _run(
        self, writes: Sequence[WriteRowsTask], deletes: Sequence[tuple[DeleteRowsTask, int]]
    ) -> list[FreezeResult]:
        """Run the tasks of a round. Those that delete come with the rows of their data files."""
        bytes_to_write = sum(task.rows.byte_count for task in writes)
        rows_to_look_at = sum(rows for _, rows in deletes)
        if (
            bytes_to_write <= SMALL_BYTES_MAX
            and rows_to_look_at <= SMALL_ROWS_MAX
            and len(deletes) <= SMALL_FILES_MAX
        ):
            return self._run_here([*writes, *(task for task, _ in deletes)])
        weighted: list[tuple[FreezeTask, int]] = [
            *((task, task.rows.row_count) for task in writes),
            *deletes,
        ]
        return [each for done in self._do(run_group, list(grouped(weighted))) for each in done]

    def _run_here(self, tasks: Sequence[FreezeTask]) -> list[FreezeResult]:
        try:
            return run_tasks(tasks, self._positions.of) if tasks else []
        except OSError as error:
            raise Unavailable(f"files of a freeze were not read or written: {error}") from error

    def _planned(self, definition: KeyedDefinition) -> _Round:
        table = self._open(definition)
        check_owner(table, self._name)
        check_topics(table, _topic_ids(definition))
        snapshot = check_own(table)
        begins = positions_of(table, definition)
        changes = self._source.changes(definition.name, begins, self._round_bytes())
        manifests = self._manifests.setdefault(definition.name, ManifestCache())
        return _Round(
            definition=definition,
            table=table,
            begins=begins,
            changes=changes,
            files=snapshot_files(table, snapshot, manifests) if changes else [],
            manifests=manifests,
        )

    def _round_bytes(self) -> int:
        return self._config.flush_bytes if self._is_disk_short() else ROUND_BYTES_MAX

    def _open(self, definition: KeyedDefinition) -> Table:
        """Return the table, after bringing it up to date and taking it over."""
        if self._opened.get(definition.name) != definition:
            self._opened.pop(definition.name, None)
            ensure_keyed_table(self._catalog, self._config, definition)
            name = self._full_name(definition)
            take_over(self._catalog, name, self._name, clock=self._clock)
            self._opened[definition.name] = definition
        try:
            return self._load(definition)
        except Unknown:
            del self._opened[definition.name]  # dropped in the catalog: the next attempt creates it
            raise Conflict(f"{definition.name} was dropped in the catalog; plan again") from None

    def _load(self, definition: KeyedDefinition) -> Table:
        from pyiceberg.exceptions import NoSuchTableError

        with catalog_calls(self._config):
            try:
                return self._catalog.load_table(self._full_name(definition))
            except NoSuchTableError:
                raise Unknown(f"there is no table {self._full_name(definition)}") from None

    def _write_tasks(self, planned: _Round, handoff: Handoff) -> list[WriteRowsTask]:
        table = planned.table
        layout = layout_of(table.schema(), table.sort_order())
        return [
            WriteRowsTask(
                rows=rows,
                layout=layout,
                location=table.location(),
                name=self._file_name(),
                io=table.io,
            )
            for rows in handoff.rows
        ]

    def _delete_tasks(self, planned: _Round, handoff: Handoff) -> list[tuple[DeleteRowsTask, int]]:
        table = planned.table
        return [
            (
                DeleteRowsTask(
                    path=file.path,
                    deletes=file.deletes_path,
                    dead=handoff.dead,
                    location=table.location(),
                    name=self._file_name(),
                    io=table.io,
                ),
                file.data.record_count,
            )
            for file in planned.files
            if may_hold(file, planned.changes)
        ]

    def _commit(
        self, planned: _Round, written: Sequence[WrittenFile], deleted: Sequence[DeleteResult]
    ) -> Appended:
        definition, table = planned.definition, planned.table
        files = {file.path: file for file in planned.files}
        added = [data_file_of(file, table) for file in written]
        removed = []
        for result in deleted:
            if result.file is not None:
                added.append(deletes_file_of(result.file, table))
                before = files[result.path].deletes
                if before is not None:
                    removed.append(before)
        ends = planned.begins | {each.partition: each.end for each in planned.changes}
        snapshot = table.current_snapshot()
        change = KeyedChange(
            table_id=definition.table_id,
            parent=None if snapshot is None else snapshot.snapshot_id,
            added=added,
            removed=removed,
            offsets={
                TopicPartition(definition.topic, number): end.offset for number, end in ends.items()
            },
            next_rows={number: end.row for number, end in ends.items()},
            appender=self._name,
            commit_id=self._unique(),
            topic_ids=_topic_ids(definition),
            manifests=planned.manifests,
        )
        dead_count = self._set_aside(_unfit_records(planned))
        name = self._full_name(definition)
        snapshot_id = commit_change(self._catalog, name, change, clock=self._clock)
        row_count = sum(file.row_count for file in written)
        ROWS.add(row_count, table=definition.name)
        table = self._load(definition)
        planned.manifests.keep_only(table)
        self._publish(definition, table)
        return Appended(
            table=definition.name,
            covered=tuple(
                Covered(
                    topic=definition.topic,
                    partition=each.partition,
                    begin=each.begin.offset,
                    end=each.end.offset,
                )
                for each in planned.changes
            ),
            row_count=row_count,
            dead_count=dead_count,
            snapshot_id=snapshot_id,
        )

    def _publish(self, definition: KeyedDefinition, table: Table) -> None:
        """Publish the offsets as read back from the catalog."""
        positions = positions_of(table, definition)
        self._offsets[definition.table_id] = {n: each.offset for n, each in positions.items()}
        for number, position in positions.items():
            self._source.publish(definition, number, position.offset)

    def _known_offsets(self, definition: KeyedDefinition) -> dict[int, int]:
        """Return the offsets of a table without asking the catalog each time."""
        if definition.table_id not in self._offsets:
            try:
                table = self._open(definition)
            except Conflict:
                return {}
            self._publish(definition, table)
        return self._offsets[definition.table_id]

    def _file_name(self) -> str:
        self._task_count += 1
        return f"{self._name[:12]}-{self._task_count:08}"

    def _full_name(self, definition: KeyedDefinition) -> str:
        return f"{self._config.namespace}.{definition.name}"

    def _unique(self) -> str:
        """Return a random 128-bit name."""
        return f"{self._rand.getrandbits(128):032x}"


def _topic_ids(definition: KeyedDefinition) -> dict[str, str]:
    return {} if definition.topic_id is None else {definition.topic: definition.topic_id}


def _unfit_records(planned: _Round) -> list[UnfitRecords]:
    definition = planned.definition
    return [
        UnfitRecords(
            partition=TopicPartition(definition.topic, each.partition),
            topic_id=definition.topic_id,
            end=each.end.offset,
            records=each.unfit,
        )
        for each in planned.changes
        if each.unfit
    ]


def may_hold(file: KeyedFile, changes: Sequence[PartitionChanges]) -> bool:
    """Return False if a data file has none of the dead row versions, by its bounds."""
    for each in changes:
        if file.partition_min <= each.partition <= file.partition_max:
            begin = int(np.searchsorted(each.dead, file.row_min))
            if begin < len(each.dead) and int(each.dead[begin]) <= file.row_max:
                return True
    return False


def _check_written(handoff: Handoff, written: Sequence[WrittenFile]) -> None:
    """Raise `Conflict` unless the tasks wrote exactly the rows that they were given."""
    given = [rows.row_count for rows in handoff.rows]
    actual = [file.row_count for file in written]
    if given != actual:
        raise Conflict(f"tasks wrote {actual} rows, but were given {given}")


def _check_found(planned: _Round, handoff: Handoff, deleted: Sequence[DeleteResult]) -> None:
    """Raise `Conflict` unless every dead row version was found in exactly one data file."""
    counts = np.zeros(len(handoff.dead_rows), np.int64)
    for result in deleted:
        np.add.at(counts, result.found, 1)
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        at = int(wrong[0])
        snapshot = planned.table.current_snapshot()
        number = None if snapshot is None else snapshot.snapshot_id
        raise Conflict(
            f"snapshot {number} of {'.'.join(planned.table.name())} has row "
            f"{handoff.dead_rows[at]} of partition {handoff.partitions[at]} {counts[at]} times, "
            f"expected once ({len(wrong)} such rows): its files are not those that Frazil wrote; "
            "drop the table: it is written again as a whole"
        )
