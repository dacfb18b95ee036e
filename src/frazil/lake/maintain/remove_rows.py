"""Removes rows from a table: drops whole files where their bounds suffice, and rewrites others.

1. list     the data files of the current snapshot, with their bounds
2. choose   skip files without such rows by their bounds, and those that were read before
3. read     in tasks: which rows match; write the others to a new file
4. commit   old files for new ones, the removed rows and their last offsets, atomically

A crash before 4 leaves orphan files, and after it nothing is left to do. Rows that the table does
not hold yet are not touched: they are in the log, and are removed after they were committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.manifest import DataFileContent, ManifestContent

from frazil.errors import Unavailable
from frazil.lake.append.commit import data_file_of, next_offsets
from frazil.lake.maintain.clean_files import CleanFiles
from frazil.lake.maintain.compaction import CompactionFile
from frazil.lake.maintain.remove_task import RemovalResult, RemovalTask, try_remove
from frazil.lake.maintain.replace_files import Replacement, replace_files
from frazil.lake.maintain.row_condition import RowCondition
from frazil.lake.scan.data_file import PARTITION_MAX, TableFile, root_of
from frazil.lake.scan.manifests import table_file_of
from frazil.lake.tables.promoted import promoted_fields
from frazil.lake.tables.properties import TOPIC, kind_of
from frazil.model import MiB, Signal, TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from frazil.lake.spark.jobs import TaskRunner
    from frazil.model import Clock

STEP_BYTES_MAX = 512 * MiB
"""Bytes of files read per step. Most are not rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalFile:
    """A data file, with its bounds."""

    part: CompactionFile
    bounds: TableFile


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPlan:
    """Files that have rows to remove, or may have."""

    whole: Sequence[RemovalFile] = ()
    """Every row is removed."""
    partial: Sequence[RemovalFile] = ()
    """To be read."""

    @property
    def is_empty(self) -> bool:
        return not (self.whole or self.partial)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRows:
    """What one step has removed."""

    row_count: int = 0
    files_dropped: int = 0
    files_rewritten: int = 0
    trouble: tuple[str, ...] = ()


def remove_some(
    catalog: Catalog,
    name: str,
    condition: RowCondition,
    clean: CleanFiles,
    do: TaskRunner,
    *,
    clock: Clock,
    unique: Callable[[], str],
) -> RemovedRows:
    """Remove rows of some files in one commit. Returns zeros if there are none left.

    Raises `Conflict` if the table was changed meanwhile.
    """
    table = catalog.load_table(name)
    files = list_files(table)
    trouble: tuple[str, ...] = ()
    while not (plan := plan_removal(files, condition, clean)).is_empty:
        step = _first_files(plan.partial)
        results = read_partial(table, condition, step, do, name=unique()[:12])
        changed = []
        for file, result in zip(step, results, strict=True):
            if result.trouble is not None:
                trouble += (result.trouble,)
            if result.row_count and result.trouble is None:
                changed.append(result)
            else:
                clean.add(file.bounds, condition)
        if changed or plan.whole:
            return _commit(catalog, name, table, plan.whole, changed, trouble, clock, unique())
    return RemovedRows(trouble=trouble)


def _commit(
    catalog: Catalog,
    name: str,
    table: Table,
    whole: Sequence[RemovalFile],
    changed: Sequence[RemovalResult],
    trouble: tuple[str, ...],
    clock: Clock,
    commit_id: str,
) -> RemovedRows:
    new = [data_file_of(each.file, table) for each in changed if each.file is not None]
    change = Replacement(
        old=[*(file.part for file in whole), *(each.part for each in changed)],
        new=new,
        commit_id=commit_id,
        removed_rows=sum(file.part.row_count for file in whole)
        + sum(each.row_count for each in changed),
        removed_ends=_merged([_ends_of(whole, table), *(each.ends for each in changed)]),
    )
    replace_files(catalog, name, change, clock=clock)
    return RemovedRows(
        row_count=change.removed_rows,
        files_dropped=len(change.old) - len(new),
        files_rewritten=len(new),
        trouble=trouble,
    )


def count_rows(
    table: Table, condition: RowCondition, do: TaskRunner, *, is_all: bool
) -> tuple[int, int]:
    """Return how many rows match, and how many files have some, in the current snapshot; with
    `is_all`, in all snapshots. Raises `Unavailable` if a file cannot be read."""
    snapshots = table.metadata.snapshots if is_all else [None]
    files = {file.part.path: file for each in snapshots for file in list_files(table, each)}
    plan = plan_removal(list(files.values()), condition, CleanFiles())
    counted = read_partial(table, condition, plan.partial, do, name="", is_count=True)
    for result in counted:
        if result.trouble is not None:
            raise Unavailable(f"rows cannot be counted: {result.trouble}")
    rows = [file.part.row_count for file in plan.whole]
    rows += [result.row_count for result in counted if result.row_count]
    return sum(rows), len(rows)


def _first_files(files: Sequence[RemovalFile]) -> list[RemovalFile]:
    """Return as many files as are read in one step."""
    chosen: list[RemovalFile] = []
    size = 0
    for file in files:
        if chosen and size + file.part.size_bytes > STEP_BYTES_MAX:
            break
        chosen.append(file)
        size += file.part.size_bytes
    return chosen


def list_files(table: Table, snapshot: Snapshot | None = None) -> list[RemovalFile]:
    """Return the data files of a snapshot, or of the current one."""
    snapshot = snapshot or table.current_snapshot()
    if snapshot is None:
        return []
    schema, root = table.schema(), root_of(table)
    return [
        RemovalFile(
            part=CompactionFile(
                path=entry.data_file.file_path,
                spec_id=manifest.partition_spec_id,
                day=entry.data_file.partition[0],
                size_bytes=entry.data_file.file_size_in_bytes,
                row_count=entry.data_file.record_count,
                first_us=0,
            ),
            bounds=table_file_of(entry.data_file, schema, root),
        )
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        if entry.data_file.content == DataFileContent.DATA
    ]


def plan_removal(
    files: Sequence[RemovalFile], condition: RowCondition, clean: CleanFiles
) -> RemovalPlan:
    """Choose the files to drop and to read."""
    whole, partial = [], []
    for file in files:
        if not condition.may_match(file.bounds.time_min_us):
            continue
        if condition.matches_all(file.bounds.time_max_us):
            whole.append(file)
        elif not clean.has(file.bounds, condition):
            partial.append(file)
    return RemovalPlan(whole=whole, partial=partial)


def read_partial(
    table: Table,
    condition: RowCondition,
    files: Sequence[RemovalFile],
    do: TaskRunner,
    *,
    name: str,
    is_count: bool = False,
) -> list[RemovalResult]:
    """Read files in tasks, and write them again without the rows; with `is_count`, only count."""
    topic = topic_of(table)
    work = [
        RemovalTask(
            condition=condition,
            part=file.part,
            topic=topic,
            location=table.location(),
            name=f"{name}-{at:08}",
            is_count=is_count,
            promoted=promoted_fields(table),
            io=table.io,
        )
        for at, file in enumerate(files)
    ]
    return do(try_remove, work)


def topic_of(table: Table) -> str | None:
    """Return the topic of all rows of a table, or None if it has a column for that."""
    name = table.name()[-1]
    for signal in Signal:
        if signal.table == name:
            return signal.topic
    if kind_of(name) != TOPIC:
        return None
    # Named by the offsets: a table name is not always reversible.
    return next(iter(next_offsets(table)), TopicPartition(name, 0)).topic


def _ends_of(files: Sequence[RemovalFile], table: Table) -> dict[TopicPartition, int]:
    """Return the offset after the last row of whole files, by partition, from their bounds."""
    held = next_offsets(table)
    topic = topic_of(table)
    ends: dict[TopicPartition, int] = {}
    for key, end in held.items():
        if topic is not None and key.topic != topic:
            continue
        last = [
            file.bounds.offset_max + 1
            for file in files
            if file.bounds.lower_bound("_log_partition") <= key.partition
            and key.partition <= file.bounds.upper_bound("_log_partition", PARTITION_MAX)
        ]
        if last:
            ends[key] = min(end, max(last))
    return ends


def _merged(all_ends: Iterable[Mapping[TopicPartition, int]]) -> dict[TopicPartition, int]:
    """Return the last of several offsets, by partition."""
    merged: dict[TopicPartition, int] = {}
    for ends in all_ends:
        for key, end in ends.items():
            merged[key] = max(merged.get(key, 0), end)
    return merged
