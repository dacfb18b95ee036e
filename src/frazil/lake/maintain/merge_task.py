"""One compaction task: merges sorted files of one day into one sorted file.

1. footers  skip files with unknown columns or another sort order
2. keys     read and sort the keys of all files once; that gives the position of every row
3. rows     read each file once, from begin to end: its rows are already in order
4. write    row group by row group; sync before the result is returned

Memory: the keys, one row group, and a batch per file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Corrupt
from frazil.lake.files.object_store import open_store
from frazil.lake.files.parquet_schema import ParquetLayout, file_layout_of
from frazil.lake.files.sort import combine, day_of
from frazil.lake.files.writer import GROUP_BYTES_MAX, GROUP_ROWS_MAX, TableWriter, WrittenFile
from frazil.lake.maintain.compaction import CompactionGroup
from frazil.lake.maintain.input_file import InputFile
from frazil.lake.spark.jobs import attempt_name
from frazil.lake.tables.promoted import PromotedField
from frazil.lake.tables.properties import PARTITION_COLUMN
from frazil.model import MiB

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

BATCHES_BYTES = 128 * MiB
"""Estimated bytes of rows read from all files and not written yet."""
STEP_ROWS = 16 * 1024
"""Rows placed at a time."""
COMPRESSION_LEVEL = 3
"""Zstd level. These files live long, and writing them is not urgent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTask:
    """The input of one task."""

    table: str
    group: CompactionGroup
    location: str
    """URI of the table."""
    name: str
    """Prefix of the file name, unique per task and attempt."""
    promoted: tuple[PromotedField, ...] = ()
    """Promoted columns of the table."""
    io: FileIO = field(repr=False)
    """May contain passwords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The merged file, or None if fewer than two files could be merged."""

    group: CompactionGroup
    """The files that were merged: those planned, without those that could not be."""
    file: WrittenFile | None


def try_merge(work: MergeTask) -> MergeResult | Corrupt:
    """Run a task. Returns `Corrupt` for a damaged file, so that other tasks of the job succeed."""
    try:
        return run_merge(replace(work, name=attempt_name(work.name)))
    except Corrupt as error:
        return error


def run_merge(work: MergeTask) -> MergeResult:
    """Run a task. Raises `Corrupt` if a file is damaged; no file of the group is changed then."""
    layout = file_layout_of(work.table, work.promoted)
    with ExitStack() as opened:
        inputs = [InputFile(part.path, work.io, layout, opened) for part in work.group.parts]
        plan = _plan([each for each in inputs if each.is_known], layout)
        if len(plan.inputs) < 2:
            return MergeResult(group=CompactionGroup(day=work.group.day, parts=()), file=None)
        _check(plan, work.group)
        files = TableWriter(
            open_store(work.location, work.io), layout, work.name, level=COMPRESSION_LEVEL
        )
        with ExitStack() as undo:
            undo.callback(files.discard)
            rows = _row_groups(plan, layout)
            files.write_sorted(work.group.day, rows, min(len(plan.order), GROUP_ROWS_MAX))
            (file,) = files.sync()
            undo.pop_all()
    merged = {each.path for each in plan.inputs}
    parts = tuple(part for part in work.group.parts if part.path in merged)
    assert file.row_count == sum(part.row_count for part in parts), f"rows of {file.path}"
    return MergeResult(group=CompactionGroup(day=work.group.day, parts=parts), file=file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The sort order, as row numbers counted over all files in sequence."""

    inputs: list[InputFile]
    order: np.ndarray
    days: np.ndarray


def _plan(inputs: list[InputFile], layout: ParquetLayout) -> _Plan:
    """Sort all rows, and leave out files that are not in this order themselves."""
    sort_keys = [(name, "ascending") for name in layout.order]
    while True:
        if not inputs:
            return _Plan(inputs=[], order=np.empty(0, np.int64), days=np.empty(0, np.int64))
        keys = pa.concat_tables([each.keys() for each in inputs])
        order = pc.sort_indices(keys, sort_keys).to_numpy().astype(np.int64)
        starts = _starts(inputs)
        files = np.searchsorted(starts, order, side="right") - 1
        # The rows of a sorted file appear in their own order.
        by_file = np.argsort(files, kind="stable")
        is_unsorted = order[by_file] != np.arange(len(order))
        unsorted = set(np.unique(files[by_file][is_unsorted]).tolist())
        if not unsorted:
            days = np.unique(day_of(keys[PARTITION_COLUMN]).to_numpy())
            return _Plan(inputs=inputs, order=order, days=days)
        inputs = [each for at, each in enumerate(inputs) if at not in unsorted]


def _starts(inputs: Sequence[InputFile]) -> np.ndarray:
    """Return the number of the first row of each file."""
    counts = [each.row_count for each in inputs]
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)


def _row_groups(plan: _Plan, layout: ParquetLayout) -> Iterator[pa.Table]:
    """Yield all rows in order, one row group at a time."""
    starts = _starts(plan.inputs)
    taken = np.zeros(len(starts), np.int64)
    for each in plan.inputs:
        each.begin(BATCHES_BYTES // len(plan.inputs))
    begin = 0
    while begin < len(plan.order):
        gathered: list[list[pa.RecordBatch]] = [[] for _ in plan.inputs]
        end, size = begin, 0
        counts = np.zeros(len(starts), np.int64)
        while end < len(plan.order) and end - begin < GROUP_ROWS_MAX and size < GROUP_BYTES_MAX:
            step = plan.order[end : end + STEP_ROWS]
            files = np.searchsorted(starts, step, side="right") - 1
            new = np.bincount(files, minlength=len(starts))
            for at in np.flatnonzero(new):
                rows = plan.inputs[at].take(int(new[at]))
                size += sum(batch.nbytes for batch in rows)
                gathered[at] += rows
            counts += new
            end += len(step)
        rows_in_group = plan.order[begin:end]
        files = np.searchsorted(starts, rows_in_group, side="right") - 1
        # Positions of these rows among the gathered ones, which are ordered by file.
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        local = rows_in_group - starts[files] - taken[files] + firsts[files]
        batches = [batch for file in gathered for batch in file]
        yield combine(batches, layout).take(pa.array(local))
        taken += counts
        begin = end


def _check(plan: _Plan, group: CompactionGroup) -> None:
    """Raise `Corrupt` unless all rows are of the day of the table partition."""
    if plan.days.tolist() != [group.day]:
        raise Corrupt(
            path=group.parts[0].path,
            position=0,
            expected=f"rows of day {group.day} in it and the files merged with it",
            found=f"days {plan.days.tolist()[:5]}",
            hint="The files are not changed; check which program wrote them",
        )
