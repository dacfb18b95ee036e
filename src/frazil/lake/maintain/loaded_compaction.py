"""Merges small files of tables that are loaded from files, and sorts files of clustered ones.

1. choose   small files of one partition; for a table with a sort order, also files that are not
            sorted by it
2. write    their rows in tasks: in the order of the files, or sorted
3. swap     by `replace_files`: no row appears or disappears

A clustered group is sorted in memory, so it is smaller. Each step leaves fewer files, or fewer that
are not sorted, so repeating it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.errors import Corrupt
from frazil.lake.files.parquet_schema import ParquetLayout
from frazil.lake.loaded.load_commit import loaded_data_file
from frazil.lake.loaded.load_table import LoadTarget, plan_load
from frazil.lake.loaded.load_writer import (
    LoadedFile,
    LoadWriter,
    sort_keys_of,
    target_layout,
    write_sorted,
)
from frazil.lake.maintain.input_file import InputFile
from frazil.lake.maintain.reachable_files import TASK_FILES, partition_of
from frazil.lake.maintain.replace_files import Replacement, replace_files
from frazil.lake.spark.jobs import TaskRunner, attempt_name
from frazil.lake.tables.properties import TARGET_BYTES, is_small
from frazil.model import MiB

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

    from frazil.model import Clock

logger = logging.getLogger(__name__)

CLUSTERED_BYTES = 64 * MiB
"""Files that are sorted together."""
SORT_BYTES_MAX = 1024 * MiB
"""Rows of a group in memory. A group with more is left alone."""
GROUP_FILES_MAX = 64
BATCHES_BYTES = 64 * MiB
STEP_BYTES_MAX = 256 * MiB
"""Files rewritten per step; a single group may be larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPart:
    """A data file of a loaded table. Has the fields of `CompactionFile` that a swap needs."""

    path: str
    spec_id: int
    partition: tuple[Any, ...]
    size_bytes: int
    row_count: int
    sort_order_id: int | None
    first: Any
    """Lower bound of the first sort column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedMerge:
    """The input of one task: files of one partition."""

    parts: tuple[LoadedPart, ...]
    target: LoadTarget
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedMerged:
    """The files that replace those of a group; none if it was left alone."""

    parts: tuple[LoadedPart, ...]
    files: tuple[LoadedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedLoad:
    """What one step has replaced."""

    old: Sequence[LoadedPart]
    new: Sequence[LoadedFile]
    skipped: Sequence[str]
    """Files that cannot be rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadTask:
    manifests: Sequence[ManifestFile]
    first_id: int | None
    first_type: Any
    io: FileIO


def loaded_groups(
    table: Table, do: TaskRunner, skipped: set[str], *, is_all: bool
) -> list[tuple[LoadedPart, ...]]:
    """Return the groups of files worth rewriting, those with the most files first."""
    from pyiceberg.manifest import ManifestContent

    snapshot = table.current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    if any(each.content == ManifestContent.DELETES for each in manifests):
        return []  # rows that another program has deleted
    order = table.sort_order()
    is_sorted = bool(sort_keys_of(order, table.schema()))
    first = table.schema().find_field(order.fields[0].source_id) if is_sorted else None
    work = [
        _ReadTask(
            manifests=manifests[at : at + TASK_FILES],
            first_id=None if first is None else first.field_id,
            first_type=None if first is None else first.field_type,
            io=table.io,
        )
        for at in range(0, len(manifests), TASK_FILES)
    ]
    partitions: dict[tuple[Any, ...], list[LoadedPart]] = {}
    for part in (part for result in do(_read_parts, work) for part in result):
        if part.path not in skipped and part.spec_id == table.metadata.default_spec_id:
            partitions.setdefault(part.partition, []).append(part)
    order_id = order.order_id if is_sorted else None
    found = [
        group for parts in partitions.values() for group in _groups(parts, order_id, is_all=is_all)
    ]
    return sorted(found, key=len, reverse=True)


def _groups(
    parts: Sequence[LoadedPart], order_id: int | None, *, is_all: bool
) -> Iterator[tuple[LoadedPart, ...]]:
    limit = TARGET_BYTES if order_id is None else CLUSTERED_BYTES

    def is_unsorted(part: LoadedPart) -> bool:
        return order_id is not None and part.sort_order_id != order_id

    chosen = [part for part in parts if is_small(part.size_bytes, limit) or is_unsorted(part)]
    pack: list[LoadedPart] = []
    for part in [*sorted(chosen, key=_place), None]:
        is_full = pack and (
            part is None
            or len(pack) == GROUP_FILES_MAX
            or sum(each.size_bytes for each in pack) + part.size_bytes > limit
        )
        if is_full:
            is_worth = len(pack) > 1 and (is_all or _is_worth_merging(pack))
            if is_worth or any(map(is_unsorted, pack)):
                yield tuple(pack)
            pack = []
        if part is not None:
            pack.append(part)


def _place(part: LoadedPart) -> tuple[Any, ...]:
    """Return the position of a file: neighbours in the order of the table are merged."""
    return (part.first is None, "" if part.first is None else part.first, part.path)


def _is_worth_merging(pack: Sequence[LoadedPart]) -> bool:
    """Return whether no file is larger than the others together: so a row is rewritten a few times
    only, however many files come."""
    largest = max(part.size_bytes for part in pack)
    return 2 * largest <= sum(part.size_bytes for part in pack)


def _read_parts(work: _ReadTask) -> list[LoadedPart]:
    from pyiceberg.conversions import from_bytes

    parts = []
    for manifest in work.manifests:
        for entry in manifest.fetch_manifest_entry(work.io, discard_deleted=True):
            file = entry.data_file
            bounds = file.lower_bounds or {}
            first = None
            if work.first_id is not None and work.first_id in bounds:
                first = from_bytes(work.first_type, bounds[work.first_id])
            parts.append(
                LoadedPart(
                    path=file.file_path,
                    spec_id=manifest.partition_spec_id,
                    partition=partition_of(file),
                    size_bytes=file.file_size_in_bytes,
                    row_count=file.record_count,
                    sort_order_id=file.sort_order_id,
                    first=first,
                )
            )
    return parts


def compact_loaded(
    catalog: Catalog,
    table: Table,
    do: TaskRunner,
    *,
    skipped: set[str],
    unique: str,
    clock: Clock,
    is_all: bool,
) -> CompactedLoad:
    """Rewrite some files of a table, and commit. `Conflict` if another program has changed one of
    them."""
    groups = loaded_groups(table, do, skipped, is_all=is_all)
    target = plan_load(table, pa.schema([])).target()
    work: list[LoadedMerge] = []
    size = 0
    for at, group in enumerate(groups):
        size += sum(part.size_bytes for part in group)
        if work and size > STEP_BYTES_MAX:
            break
        work.append(LoadedMerge(parts=group, target=target, name=f"{unique[:12]}-{at:08}"))
    old: list[LoadedPart] = []
    new: list[LoadedFile] = []
    left: list[str] = []
    for task, result in zip(work, do(try_merge_loaded, work), strict=True):
        if isinstance(result, Corrupt):
            logger.error("data file damaged", extra={"table": table.name(), "reason": str(result)})
            left.append(result.path)
        elif result.files:
            old += result.parts
            new += result.files
        else:
            left += [part.path for part in task.parts]
    if old:
        change = Replacement(
            old=old,
            new=[loaded_data_file(file, table.metadata) for file in new],
            commit_id=unique,
        )
        replace_files(catalog, ".".join(table.name()), change, clock=clock)
    return CompactedLoad(old=old, new=new, skipped=left)


def try_merge_loaded(work: LoadedMerge) -> LoadedMerged | Corrupt:
    """Run a task. Returns `Corrupt` for a damaged file, so that other tasks of the job succeed."""
    try:
        return merge_loaded(replace(work, name=attempt_name(work.name)))
    except Corrupt as error:
        return error


def merge_loaded(work: LoadedMerge) -> LoadedMerged:
    """Run a task. No file is changed; the new ones are durable."""
    schema, order = target_layout(work.target)
    layout = ParquetLayout(
        schema=schema,
        numbered_schema=schema,
        leaves=(),
        order=(),
        bloom=(),
        with_dictionary=[],
    )
    nothing = LoadedMerged(parts=work.parts, files=())
    with ExitStack() as opened:
        inputs = [InputFile(part.path, work.target.io, layout, opened) for part in work.parts]
        if not all(each.is_known for each in inputs):
            return nothing
        batches = (batch for each in inputs for batch in each.batches(BATCHES_BYTES // len(inputs)))
        if order:
            rows: list[pa.RecordBatch] = []
            size = 0
            for batch in batches:
                rows.append(batch)
                size += batch.nbytes
                if size > SORT_BYTES_MAX:
                    return nothing
            files = write_sorted(work.target, work.name, pa.Table.from_batches(rows, schema))
        else:
            files = _written(work, batches)
    count = sum(part.row_count for part in work.parts)
    assert sum(file.row_count for file in files) == count, f"rows of {work.name}"
    return LoadedMerged(parts=work.parts, files=files)


def _written(work: LoadedMerge, batches: Iterator[pa.RecordBatch]) -> tuple[LoadedFile, ...]:
    writer = LoadWriter(work.target, work.name)
    with ExitStack() as undo:
        undo.callback(writer.discard)
        for batch in batches:
            writer.write(pa.Table.from_batches([batch]))
        writer.end_file()
        files = writer.finish()
        undo.pop_all()
    return files
