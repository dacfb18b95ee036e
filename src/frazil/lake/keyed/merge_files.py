"""Compaction of a keyed table: rewrites data files without their dead rows.

1. choose   files of which a third is dead; small files, if there are many
2. merge    in tasks: read the rows that are alive, sort them by key, write one file
3. commit   new files for old ones and their delete files, on exactly the snapshot of 1

Rows keep `_row` and `_offset`. Runs on the lake's thread, so never while a table is frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import Conflict
from frazil.lake.append.commit import data_file_of, next_offsets
from frazil.lake.files.parquet_damage import parquet_damage
from frazil.lake.files.parquet_schema import ParquetLayout
from frazil.lake.files.writer import WrittenFile
from frazil.lake.keyed.commit import KeyedChange, commit_change
from frazil.lake.keyed.schema import layout_of, stored_rows
from frazil.lake.keyed.snapshot_files import KeyedFile, snapshot_files
from frazil.lake.keyed.table import check_own, rows_of_text
from frazil.lake.keyed.write_task import write_table
from frazil.lake.scan.position_deletes import live_mask, read_positions
from frazil.lake.spark.jobs import attempt_name
from frazil.lake.tables.properties import KEYED_TARGET_BYTES, NEXT_ROWS, TABLE_ID, is_small
from frazil.model import MiB

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from frazil.lake.spark.jobs import TaskRunner
    from frazil.model import Clock

DEAD_PERCENT = 30
"""A file is rewritten when so much of it is dead."""
FILES_MIN = 8
"""Fewer small files are not worth a merge."""
GROUP_FILES_MAX = 64
STEP_BYTES_MAX = 128 * MiB
"""Bytes rewritten per step: some seconds on a small machine."""
COMPRESSION_LEVEL = 3
"""Zstd level. These files live longer than those of a round."""
READ_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeFilesTask:
    """The input of a task."""

    paths: Sequence[tuple[str, str | None]]
    """Data files, each with its delete file."""
    layout: ParquetLayout
    location: str
    name: str
    io: FileIO = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFiles:
    """What one step has done."""

    old_files: int = 0
    new_files: int = 0
    old_bytes: int = 0
    new_bytes: int = 0


def merge_some(
    catalog: Catalog,
    name: str,
    do: TaskRunner,
    *,
    clock: Clock,
    unique: Callable[[], str],
    is_all: bool = False,
) -> MergedFiles:
    """Rewrite some files in one commit, if it pays; with `is_all`, every file that has dead rows or
    is small. Returns zeros if there are none.

    Raises `Conflict` if another program has changed the table, `Corrupt` if a file is damaged.
    """
    table = catalog.load_table(name)
    files = snapshot_files(table, check_own(table))
    groups = _first_step(groups_of(files, is_all=is_all))
    if not groups:
        return MergedFiles()
    layout = layout_of(table.schema(), table.sort_order())
    stem = unique()[:12]
    tasks = [
        MergeFilesTask(
            paths=[(file.path, file.deletes_path) for file in group],
            layout=layout,
            location=table.location(),
            name=f"{stem}-{number:08}",
            io=table.io,
        )
        for number, group in enumerate(groups)
    ]
    new = [file for file in do(run_merge, tasks) if file is not None]
    old = [file for group in groups for file in group]
    _check_rows(old, new)
    _commit(catalog, name, table, old, new, commit_id=unique(), clock=clock)
    return MergedFiles(
        old_files=len(old),
        new_files=len(new),
        old_bytes=sum(file.data.file_size_in_bytes for file in old),
        new_bytes=sum(file.size_bytes for file in new),
    )


def join_manifests(catalog: Catalog, name: str, *, clock: Clock, unique: Callable[[], str]) -> None:
    """Commit a snapshot with the same files in fewer manifests."""
    table = catalog.load_table(name)
    check_own(table)
    _commit(catalog, name, table, [], [], commit_id=unique(), clock=clock)


def _commit(
    catalog: Catalog,
    name: str,
    table: Table,
    old: Sequence[KeyedFile],
    new: Sequence[WrittenFile],
    *,
    commit_id: str,
    clock: Clock,
) -> None:
    change = KeyedChange(
        table_id=table.properties[TABLE_ID],
        parent=table.metadata.current_snapshot_id,
        added=[data_file_of(file, table) for file in new],
        removed=[file.data for file in old]
        + [file.deletes for file in old if file.deletes is not None],
        offsets=next_offsets(table),
        next_rows=rows_of_text(table.properties.get(NEXT_ROWS, "{}")),
        appender=None,
        commit_id=commit_id,
        is_same_rows=True,
    )
    commit_change(catalog, name, change, clock=clock)


def groups_of(files: Sequence[KeyedFile], *, is_all: bool = False) -> list[list[KeyedFile]]:
    """Return the files to rewrite, those of each group into one."""
    dead: list[KeyedFile] = []
    others: list[KeyedFile] = []
    for file in files:
        if _is_mostly_dead(file) or (is_all and file.dead_count):
            dead.append(file)
        elif is_small(file.data.file_size_in_bytes, KEYED_TARGET_BYTES):
            others.append(file)
    small = others if is_all else _worth_merging(others)
    if len(small) < (2 if is_all else FILES_MIN) and not (is_all and dead):
        small = []
    chosen = sorted([*dead, *small], key=lambda file: (file.row_min, file.path))
    groups = list(_packed(chosen))
    return [group for group in groups if len(group) > 1 or group[0].dead_count]


def _is_mostly_dead(file: KeyedFile) -> bool:
    return bool(100 * file.dead_count >= DEAD_PERCENT * file.data.record_count)


def _worth_merging(small: Sequence[KeyedFile]) -> list[KeyedFile]:
    """Return the most of the smallest files of which none is larger than the rest together, so that
    every rewrite at least doubles the file that a row is in."""
    ordered = sorted(small, key=lambda file: (file.live_bytes, file.path))
    total = count = 0
    for at, file in enumerate(ordered):
        if 0 < file.live_bytes <= total:
            count = at + 1
        total += file.live_bytes
    return ordered[:count]


def _packed(files: Sequence[KeyedFile]) -> Iterator[list[KeyedFile]]:
    group: list[KeyedFile] = []
    size = 0
    for file in files:
        too_large = size + file.live_bytes > KEYED_TARGET_BYTES
        if group and (too_large or len(group) == GROUP_FILES_MAX):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.live_bytes
    if group:
        yield group


def _first_step(groups: Sequence[list[KeyedFile]]) -> list[list[KeyedFile]]:
    """Return as many groups as are rewritten in one step."""
    chosen: list[list[KeyedFile]] = []
    size = 0
    for group in groups:
        group_bytes = sum(file.data.file_size_in_bytes for file in group)
        if chosen and size + group_bytes > STEP_BYTES_MAX:
            break
        chosen.append(group)
        size += group_bytes
    return chosen


def run_merge(work: MergeFilesTask) -> WrittenFile | None:
    """Run one task, in a Python worker of Spark. Returns None if no row is alive."""
    work = replace(work, name=attempt_name(work.name))
    batches = [
        batch
        for path, deletes in work.paths
        for batch in live_batches(path, deletes, work.layout, work.io)
    ]
    if not batches:
        return None
    rows = stored_rows(batches, work.layout)
    return write_table(
        rows, work.layout, work.location, work.io, work.name, level=COMPRESSION_LEVEL
    )


def live_batches(
    path: str, deletes: str | None, layout: ParquetLayout, io: FileIO
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a data file that are alive, in the columns of the layout. Raises `Corrupt`
    if the file is damaged."""
    dead = read_positions(deletes, io)
    with parquet_damage(path), io.new_input(path).open() as source:
        file = pq.ParquetFile(source, page_checksum_verification=True)
        names = [name for name in layout.schema.names if name in file.schema_arrow.names]
        first = 0
        for batch in file.iter_batches(READ_ROWS, columns=names, use_threads=False):
            live = batch.filter(live_mask(batch.num_rows, first, dead))
            first += batch.num_rows
            if live.num_rows:
                yield from stored_rows([live], layout).to_batches()


def _check_rows(old: Sequence[KeyedFile], new: Sequence[WrittenFile]) -> None:
    expected, actual = sum(f.live_count for f in old), sum(f.row_count for f in new)
    if expected != actual:
        raise Conflict(f"merged files have {actual} rows, but {expected} are alive; plan again")
