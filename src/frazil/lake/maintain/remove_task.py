"""One removal task: reads a data file, and writes it again without the rows that are removed.

1. count   read only the columns of the condition; most files have no such row, or only such rows
2. write   the other rows, in the same order; sync before the result is returned

The file itself is not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Corrupt, Malformed
from frazil.lake.files.object_store import open_store
from frazil.lake.files.parquet_schema import ParquetLayout, file_layout_of
from frazil.lake.files.sort import combine
from frazil.lake.files.writer import GROUP_BYTES_MAX, GROUP_ROWS_MAX, TableWriter, WrittenFile
from frazil.lake.maintain.compaction import CompactionFile
from frazil.lake.maintain.input_file import InputFile
from frazil.lake.maintain.row_condition import RowCondition, matching
from frazil.lake.spark.jobs import attempt_name
from frazil.lake.tables.promoted import PromotedField
from frazil.model import MiB, TopicPartition

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

BATCH_BYTES = 32 * MiB
"""Estimated bytes of rows that are evaluated at a time."""
COMPRESSION_LEVEL = 3
"""Zstd level, as in compaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalTask:
    """The input of one task."""

    condition: RowCondition
    part: CompactionFile
    topic: str | None
    """The topic of all its rows; None if they have a column for it."""
    location: str
    """URI of the table."""
    name: str
    """Prefix of the file name, unique per task and attempt."""
    is_count: bool = False
    """Only count the rows."""
    promoted: tuple[PromotedField, ...] = ()
    """Promoted columns of the table."""
    io: FileIO = field(repr=False)
    """May contain passwords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalResult:
    """What a task found and wrote."""

    part: CompactionFile
    row_count: int = 0
    """Rows to remove."""
    file: WrittenFile | None = None
    """The other rows; None if there are none, or nothing is removed."""
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """The offset after the last removed row, by partition."""
    trouble: str | None = None
    """Why the file was left as it is."""


def try_remove(work: RemovalTask) -> RemovalResult:
    """Run a task. A file that cannot be read or rewritten does not stop the others."""
    try:
        return run_removal(replace(work, name=attempt_name(work.name)))
    except Corrupt as error:
        return RemovalResult(part=work.part, trouble=str(error))
    except Malformed as error:
        trouble = f"the condition cannot be evaluated in {work.part.path}: {error}"
        return RemovalResult(part=work.part, trouble=trouble)


def run_removal(work: RemovalTask) -> RemovalResult:
    """Run a task. Raises `Corrupt` if the file is damaged."""
    layout = file_layout_of(work.condition.table, work.promoted)
    part = work.part
    with ExitStack() as opened:
        source = InputFile(part.path, work.io, layout, opened)
        count, ends = _count(source, work, layout)
        if count == 0 or work.is_count or count == source.row_count:
            return RemovalResult(part=part, row_count=count, ends=ends)
        if not source.is_known:
            return RemovalResult(
                part=part,
                row_count=count,
                trouble=f"{part.path} has {count} rows to remove, but also columns that are not "
                "ours, so it cannot be rewritten; rewrite it with Spark",
            )
        files = TableWriter(
            open_store(work.location, work.io), layout, work.name, level=COMPRESSION_LEVEL
        )
        with ExitStack() as undo:
            undo.callback(files.discard)
            groups = _groups(source, work.condition, layout)
            files.write_sorted(part.day, groups, min(source.row_count - count, GROUP_ROWS_MAX))
            (file,) = files.sync()
            undo.pop_all()
    assert file.row_count == part.row_count - count, f"rows of {file.path}"
    return RemovalResult(part=part, row_count=count, file=file, ends=ends)


def _count(
    source: InputFile, work: RemovalTask, layout: ParquetLayout
) -> tuple[int, dict[TopicPartition, int]]:
    """Return the number of rows to remove, and the offset after the last of each partition."""
    count = 0
    ends: dict[TopicPartition, int] = {}
    for batch in source.batches(BATCH_BYTES, work.condition.columns_in(layout.schema.names)):
        hits = batch.filter(matching(batch, work.condition.sql))
        if not hits.num_rows:
            continue
        count += hits.num_rows
        keys = ["_log_partition"] if work.topic is not None else ["topic", "_log_partition"]
        groups = pa.Table.from_batches([hits]).group_by(keys).aggregate([("_offset", "max")])
        for row in groups.to_pylist():
            key = TopicPartition(work.topic or row["topic"], row["_log_partition"])
            ends[key] = max(ends.get(key, 0), row["_offset_max"] + 1)
    return count, ends


def _groups(
    source: InputFile, condition: RowCondition, layout: ParquetLayout
) -> Iterator[pa.Table]:
    """Yield the rows that stay, one row group at a time."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in source.batches(BATCH_BYTES):
        rest = batch.filter(pc.invert(matching(batch, condition.sql)))
        for at in range(0, rest.num_rows, GROUP_ROWS_MAX):
            portion = rest.slice(at, GROUP_ROWS_MAX)
            if kept and (rows + portion.num_rows > GROUP_ROWS_MAX or size > GROUP_BYTES_MAX):
                yield combine(kept, layout)
                kept, rows, size = [], 0, 0
            kept.append(portion)
            rows += portion.num_rows
            size += portion.nbytes
    if kept:
        yield combine(kept, layout)
