"""What one task of compaction does: sorted files of one day become one sorted file.

1. look    at the footers: files with columns that we do not know, or in another order, are left
2. keys    of all files are read and sorted once: that says which row comes where
3. rows    of each file come in the order they lie in, so each is read once, from begin to end
4. write   row group by row group; sync, before anybody hears of it

Memory is that of the keys, of one row group, and of a batch per file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.errors import Corrupt
from frazil.lake.files.object_store import open_store
from frazil.lake.files.parquet_schema import FIELD_ID, ParquetLayout, file_layout_of
from frazil.lake.files.sort import combine, day_of, take_rows
from frazil.lake.files.writer import GROUP_BYTES_MAX, GROUP_ROWS_MAX, TableWriter, WrittenFile
from frazil.lake.maintain.compaction import CompactionGroup
from frazil.lake.spark.jobs import name_of_try
from frazil.lake.tables.properties import PARTITION_COLUMN
from frazil.model import MiB

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

BATCHES_BYTES = 128 * MiB
"""Rows of all files that wait to be written, about."""
STEP_ROWS = 16 * 1024
"""Rows that are looked for at once."""
BUFFER_BYTES = 64 * 1024
"""Of a column of a file, read at once."""
COMPRESSION_LEVEL = 3
"""Of zstd. These files are read for long, and nobody waits for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTask:
    """The work of one task."""

    table: str
    group: CompactionGroup
    location: str
    """Of the table."""
    name: str
    """Begins the name of the file. No two tasks share it, nor two tries of one."""
    io: FileIO = field(repr=False)
    """May hold passwords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """These files hold the same rows as that one; nothing when there was no use in joining."""

    group: CompactionGroup
    """What was joined. May be less than was to be."""
    file: WrittenFile | None


def try_merge(work: MergeTask) -> MergeResult | Corrupt:
    """Do a task, wherever it runs. That a file is damaged is an answer: the others are joined."""
    try:
        return run_merge(replace(work, name=name_of_try(work.name)))
    except Corrupt as error:
        return error


def run_merge(work: MergeTask) -> MergeResult:
    """Do a task. `Corrupt` when a file is damaged: then it stays as it is, with those beside it."""
    layout = file_layout_of(work.table)
    with ExitStack() as opened:
        inputs = [_Input(part.path, work.io, layout, opened) for part in work.group.parts]
        usable = [each for each in inputs if each.is_known]
        plan = _plan(usable, layout)
        if len(plan.inputs) < 2:
            return MergeResult(group=CompactionGroup(day=work.group.day, parts=()), file=None)
        _check(plan, work.group)
        files = TableWriter(
            open_store(work.location, work.io), layout, work.name, level=COMPRESSION_LEVEL
        )
        with ExitStack() as undo:
            undo.callback(files.discard)
            rows = _row_groups(plan, layout)
            files.write_sorted(work.group.day, rows, min(len(plan.places), GROUP_ROWS_MAX))
            (file,) = files.sync()
            undo.pop_all()
    joined = {each.path for each in plan.inputs}
    parts = tuple(part for part in work.group.parts if part.path in joined)
    assert file.row_count == sum(part.row_count for part in parts), f"rows of {file.path}"
    return MergeResult(group=CompactionGroup(day=work.group.day, parts=parts), file=file)


class _Input:
    """One file that is read from begin to end."""

    def __init__(self, path: str, io: FileIO, layout: ParquetLayout, opened: ExitStack) -> None:
        self.path = path
        self._layout = layout
        source = opened.enter_context(io.new_input(path).open())
        with _damage_in(path):
            self._file = pq.ParquetFile(
                source,
                buffer_size=BUFFER_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
            )
        self.row_count: int = self._file.metadata.num_rows
        self._names = _names_by_id(self._file.schema_arrow)
        self.is_known = _is_known(self._file.schema_arrow, layout)
        self._waiting: list[pa.RecordBatch] = []
        self._batches: Iterator[pa.RecordBatch] = iter(())

    def keys(self) -> pa.Table:
        """The columns that the rows are sorted by, and the time."""
        wanted = list(dict.fromkeys([*self._layout.order, PARTITION_COLUMN]))
        names = [self._names[_id(self._layout.schema.field(name))] for name in wanted]
        with _damage_in(self.path):
            return self._file.read(names).select(names).rename_columns(wanted)

    def begin(self, bytes_max: int) -> None:
        """Rows come from the first one on. Not more than about `bytes_max` wait in memory."""
        self._batches = self._read(bytes_max)

    def take(self, count: int) -> list[pa.RecordBatch]:
        """The next rows."""
        taken = []
        while count:
            if not self._waiting:
                with _damage_in(self.path):
                    self._waiting.append(next(self._batches))
            batch = self._waiting.pop()
            if batch.num_rows > count:
                self._waiting.append(batch.slice(count))
                batch = batch.slice(0, count)
            taken.append(batch)
            count -= batch.num_rows
        return taken

    def _read(self, bytes_max: int) -> Iterator[pa.RecordBatch]:
        for at in range(self._file.num_row_groups):
            # No row group is larger than this in memory, so that a row is at most so wide.
            rows = self._file.metadata.row_group(at).num_rows
            size = max(1, rows * bytes_max // GROUP_BYTES_MAX)
            for batch in self._file.iter_batches(size, row_groups=[at]):
                yield self._as_in(batch)

    def _as_in(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With all columns of the layout, in its order."""
        columns = []
        for wanted in self._layout.schema:
            name = self._names.get(_id(wanted))
            columns.append(
                pa.nulls(batch.num_rows, wanted.type)
                if name is None
                else batch.column(name).cast(wanted.type)
            )
        return pa.RecordBatch.from_arrays(columns, schema=self._layout.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Which row comes where: the numbers of rows, counted over all files one after the other."""

    inputs: list[_Input]
    places: np.ndarray
    days: np.ndarray


def _plan(inputs: list[_Input], layout: ParquetLayout) -> _Plan:
    """The order of all rows, and those files that are in this order themselves."""
    order = [(name, "ascending") for name in layout.order]
    while True:
        if not inputs:
            return _Plan(inputs=[], places=np.empty(0, np.int64), days=np.empty(0, np.int64))
        keys = pa.concat_tables([each.keys() for each in inputs])
        places = pc.sort_indices(keys, order).to_numpy().astype(np.int64)
        starts = _starts(inputs)
        files = np.searchsorted(starts, places, side="right") - 1
        # A file in order gives its rows one after the other, from the first one on.
        by_file = np.argsort(files, kind="stable")
        is_wrong = places[by_file] != np.arange(len(places))
        wrong = set(np.unique(files[by_file][is_wrong]).tolist())
        if not wrong:
            days = np.unique(day_of(keys[PARTITION_COLUMN]).to_numpy())
            return _Plan(inputs=inputs, places=places, days=days)
        inputs = [each for at, each in enumerate(inputs) if at not in wrong]


def _starts(inputs: Sequence[_Input]) -> np.ndarray:
    """The number of the first row of each file."""
    counts = [each.row_count for each in inputs]
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)


def _row_groups(plan: _Plan, layout: ParquetLayout) -> Iterator[pa.Table]:
    """All rows in order, as many at once as a row group holds."""
    starts = _starts(plan.inputs)
    taken = np.zeros(len(starts), np.int64)
    for each in plan.inputs:
        each.begin(BATCHES_BYTES // len(plan.inputs))
    begin = 0
    while begin < len(plan.places):
        gathered: list[list[pa.RecordBatch]] = [[] for _ in plan.inputs]
        end, size = begin, 0
        counts = np.zeros(len(starts), np.int64)
        while end < len(plan.places) and end - begin < GROUP_ROWS_MAX and size < GROUP_BYTES_MAX:
            some = plan.places[end : end + STEP_ROWS]
            files = np.searchsorted(starts, some, side="right") - 1
            new = np.bincount(files, minlength=len(starts))
            for at in np.flatnonzero(new):
                rows = plan.inputs[at].take(int(new[at]))
                size += sum(batch.nbytes for batch in rows)
                gathered[at] += rows
            counts += new
            end += len(some)
        wanted = plan.places[begin:end]
        files = np.searchsorted(starts, wanted, side="right") - 1
        # Where these rows are among those gathered, which lie file by file.
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        local = wanted - starts[files] - taken[files] + firsts[files]
        batches = [batch for file in gathered for batch in file]
        yield take_rows(combine(batches, layout), pa.array(local))
        taken += counts
        begin = end


def _check(plan: _Plan, group: CompactionGroup) -> None:
    """All rows are of the day that the table says."""
    if plan.days.tolist() != [group.day]:
        raise Corrupt(
            path=group.parts[0].path,
            position=0,
            expected=f"rows of day {group.day} in it and the files beside it",
            found=f"days {plan.days.tolist()[:5]}",
            hint="The files stay as they are; look who wrote them",
        )


def _names_by_id(schema: pa.Schema) -> dict[int, str]:
    """What a file calls the fields of the table; names change, ids do not."""
    return {_id(field): field.name for field in schema if FIELD_ID in (field.metadata or {})}


def _id(field: pa.Field) -> int:
    return int(field.metadata[FIELD_ID])


def _is_known(schema: pa.Schema, layout: ParquetLayout) -> bool:
    """Would nothing be lost by writing these columns as ours?"""
    ours = {_id(field): field for field in layout.schema}
    names = _names_by_id(schema)
    if len(names) != len(schema.names) or not names.keys() <= ours.keys():
        return False
    if any(not field.nullable for number, field in ours.items() if number not in names):
        return False
    return all(_ids_in(schema.field(name)) == _ids_in(ours[i]) for i, name in names.items())


def _ids_in(field: pa.Field) -> tuple[object, ...]:
    """The type of a field with the ids of all that is in it."""
    kind = field.type
    if pa.types.is_nested(kind):
        if pa.types.is_map(kind):
            inner = [kind.key_field, kind.item_field]
        else:
            inner = [kind.field(at) for at in range(kind.num_fields)]
        return (_id(field), kind.id, *(_ids_in(each) for each in inner))
    return (_id(field), str(kind))


@contextmanager
def _damage_in(path: str) -> Iterator[None]:
    """What Parquet says of a damaged file becomes `Corrupt`, with the name of the file."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and "checksum" not in str(error):
            raise  # the disk, or the network
        raise Corrupt(
            path=path,
            position=0,
            expected="a Parquet file",
            found=str(error),
            hint="The file stays as it is. Look whether the disk is sound",
        ) from error
