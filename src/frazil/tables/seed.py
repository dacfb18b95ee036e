"""Builds the files of a partition from its rows as of an offset, as the lake has them.

For when the log no longer has the changes that the files lack. The rows come in any order and may
be many, so they are sorted in two passes:

    runs    batches of about `tables.seal_bytes`, each sorted, in temporary files
    files   ranges of offsets of all runs, merged; checked, durable, and still temporary
    swap    once all keys are known to differ, the files get their names

Until the last file has its name the files end below their horizon, and a start uses none of them:
it asks for the rows again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from frazil.disk import Disk, WriteBuffer, make_directories
from frazil.errors import Malformed
from frazil.settings import TablesConfig
from frazil.tables.definition import OFFSET, ROW, TableDefinition
from frazil.tables.definition_file import partition_folder
from frazil.tables.keys.index_file import NAME, IndexPosition, write_index
from frazil.tables.keys.kernels import Longs
from frazil.tables.keys.key_block import key_array
from frazil.tables.recovery import SEGMENT_NAME, identity_of, index_rest, load_rows
from frazil.tables.rows.deaths import no_deaths
from frazil.tables.rows.mapped_pages import MappedPages
from frazil.tables.rows.row_segment import OFFSET_FIELD, empty_batch, segment_of_rows
from frazil.tables.rows.segment_file import (
    RowFile,
    RowFileHeader,
    scratch_path,
    segment_path,
    write_scratch,
)
from frazil.tables.state import PartitionState
from frazil.tables.writer import partitions_of

ROW_FIELD = pa.field(ROW, pa.int64(), nullable=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Rows that are sorted by number, in a temporary file."""

    path: str
    batch: pa.RecordBatch
    offsets: Longs


def seed_partition(
    disk: Disk,
    definition: TableDefinition,
    partition: int,
    batches: Iterable[pa.RecordBatch],
    *,
    end_offset: int,
    next_row: int,
    config: TablesConfig | None = None,
) -> int:
    """Replace the files of a partition by its rows as of an offset. No fold has it open.

    `batches` have the columns of the table, `_offset` and `_row`: all rows that are live as of
    `end_offset`; `next_row` is the number of the next row version. Returns how many rows there
    are. Durable on return. Raises `Malformed` if the rows cannot be those of a partition; then, and
    after an `OSError` before the swap, the files are what they were.
    """
    if end_offset < 1:
        raise _wrong(definition, "as of offset 0 there are none; the log has everything")
    config = config or TablesConfig()
    folder = partition_folder(definition.name, partition)
    make_directories(disk, folder)
    _remove_scratch(disk, folder)
    try:
        runs = list(_write_runs(disk, folder, definition, batches, config.seal_bytes))
        files = list(_write_files(disk, folder, definition, partition, runs, end_offset, next_row))
        state = PartitionState(definition, MappedPages(config.mapped_bytes_max))
        load_rows(state, files)
        doubled = index_rest(state, None)
        if len(doubled):
            raise _wrong(definition, f"the key of row {doubled[0]} is in another row, too")
        _swap(disk, folder, files)
    except Malformed:
        _remove_scratch(disk, folder)
        raise
    position = IndexPosition(
        identity=identity_of(definition, partition),
        offset=end_offset,
        row_count=next_row,
        death_count=state.deaths.count,
    )
    write_index(disk, folder, state.index, position)
    return sum(file.header.row_count for file in files)


def _remove_scratch(disk: Disk, folder: str) -> None:
    for name in disk.list(folder):
        if name.endswith(".tmp"):
            disk.unlink(f"{folder}/{name}")


def _write_runs(
    disk: Disk,
    folder: str,
    definition: TableDefinition,
    batches: Iterable[pa.RecordBatch],
    run_bytes: int,
) -> Iterator[_Run]:
    waiting: list[pa.RecordBatch] = []
    size = number = 0
    for batch in batches:
        waiting.append(_conformed(definition, batch))
        size += waiting[-1].nbytes
        if size >= run_bytes:
            yield _write_run(disk, folder, waiting, number)
            waiting, size, number = [], 0, number + 1
    if waiting:
        yield _write_run(disk, folder, waiting, number)


def _seed_schema(definition: TableDefinition) -> pa.Schema:
    return pa.schema([*definition.schema, OFFSET_FIELD, ROW_FIELD])


def _conformed(definition: TableDefinition, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch in the types of the table."""
    schema = _seed_schema(definition)
    missing = [name for name in schema.names if name not in batch.schema.names]
    if missing:
        raise _wrong(definition, f"they have no column {missing[0]}")
    try:
        arrays = [batch[field.name].cast(field.type) for field in schema]
    except pa.ArrowException as error:
        raise _wrong(definition, str(error)) from None
    for field, array in zip(schema, arrays, strict=True):
        if array.null_count and not field.nullable:
            raise _wrong(definition, f"{field.name} is null in a row, but the column is NOT NULL")
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _write_run(disk: Disk, folder: str, waiting: list[pa.RecordBatch], number: int) -> _Run:
    batch = _sorted(pa.concat_batches(waiting))
    path = f"{folder}/seed-{number}.tmp"
    file = disk.open(path, "create")
    try:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        file.append([memoryview(sink.getvalue())])
        mapped = file.map()
    finally:
        file.close()
    with pa.ipc.open_stream(pa.py_buffer(mapped.view)) as reader:
        (batch,) = list(reader)
    return _Run(path, batch, batch[OFFSET].to_numpy())


def _sorted(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch[ROW].to_numpy()
    if np.all(rows[1:] > rows[:-1]):
        return batch
    return batch.take(pa.array(np.argsort(rows, kind="stable")))


def _write_files(
    disk: Disk,
    folder: str,
    definition: TableDefinition,
    partition: int,
    runs: list[_Run],
    end_offset: int,
    next_row: int,
) -> Iterator[RowFile]:
    """Merge the runs, one range of offsets after the other."""
    for run in runs:
        if np.any(run.offsets[1:] < run.offsets[:-1]):
            raise _wrong(definition, "a later row version has an earlier offset")
        if len(run.offsets) and run.offsets[-1] >= end_offset:
            raise _wrong(definition, f"one was made at {run.offsets[-1]}, after {end_offset}")
    count = sum(run.batch.num_rows for run in runs)
    if count > next_row:
        raise _wrong(definition, f"they are {count}, but only {next_row} were ever made")
    cuts = _cuts(runs, end_offset)
    buffer, base_row = WriteBuffer(), 0
    for begin, end in pairwise(cuts):
        parts = [_between(run, begin, end, is_first=begin == 0) for run in runs]
        batch = _sorted(pa.concat_batches([*parts, empty_batch(_seed_schema(definition))]))
        is_last = end == end_offset
        _check_rows(definition, partition, batch, base_row, end, next_row)
        numbers = batch[ROW].to_numpy()
        end_row = next_row if is_last else int(numbers[-1]) + 1
        columns = batch.select(definition.schema.names)
        segment = segment_of_rows(definition, columns, batch[OFFSET].to_numpy(), base_row)
        header = RowFileHeader(
            identity=identity_of(definition, partition),
            begin_offset=begin,
            end_offset=end,
            base_row=base_row,
            end_row=end_row,
            base_death=0,
            end_death=next_row - count if is_last else 0,
            row_count=batch.num_rows,
            death_count=0,
            definition=definition.version,
            horizon=end_offset,
        )
        path = segment_path(folder, begin)
        rows = np.array(numbers)
        yield write_scratch(
            disk, path, header, segment.batch, rows, no_deaths(), buffer, is_read_back=True
        )
        base_row = end_row


def _cuts(runs: list[_Run], end_offset: int) -> list[int]:
    """Return offsets between which there is about one run's worth of rows."""
    if not runs:
        return [0, end_offset]
    offsets = np.sort(np.concatenate([run.offsets for run in runs]))
    rows = -(-len(offsets) // len(runs))
    inner = np.unique(offsets[rows::rows])
    return [0, *inner[inner > offsets[0]].tolist(), end_offset]


def _between(run: _Run, begin: int, end: int, *, is_first: bool) -> pa.RecordBatch:
    """Return the rows of some offsets. Those that cannot be are left in, to be refused."""
    first = 0 if is_first else int(np.searchsorted(run.offsets, begin))
    return run.batch.slice(first, int(np.searchsorted(run.offsets, end)) - first)


def _check_rows(
    definition: TableDefinition,
    partition: int,
    batch: pa.RecordBatch,
    base_row: int,
    end_offset: int,
    next_row: int,
) -> None:
    rows, offsets = batch[ROW].to_numpy(), batch[OFFSET].to_numpy()
    if not len(rows):
        return
    same = np.flatnonzero(rows[1:] == rows[:-1])
    if len(same):
        raise _wrong(definition, f"row {rows[same[0]]} is there twice")
    if rows[0] < base_row or rows[-1] >= next_row:
        raise _wrong(definition, f"row {rows[0]} or {rows[-1]} is not in {base_row} to {next_row}")
    if np.any(offsets[1:] < offsets[:-1]) or offsets[0] < 0:
        raise _wrong(definition, "a later row version has an earlier offset")
    if definition.feed is not None:
        return  # whoever writes to the topic has chosen the partitions
    owners = partitions_of(definition, key_array([batch[name] for name in definition.key]))
    if np.any(owners != partition):
        raise _wrong(definition, f"row {rows[owners != partition][0]} is of another partition")


def _swap(disk: Disk, folder: str, files: list[RowFile]) -> None:
    """Give the files their names, and remove all others."""
    paths = [segment_path(folder, file.header.begin_offset) for file in files]
    for path in paths:
        disk.rename(scratch_path(path), path)
    disk.sync_directory(folder)
    kept = {path.rpartition("/")[2] for path in paths}
    for name in disk.list(folder):
        is_old = SEGMENT_NAME.fullmatch(name) and name not in kept
        if is_old or name == NAME or name.endswith(".tmp"):
            disk.unlink(f"{folder}/{name}")
    disk.sync_directory(folder)


def _wrong(definition: TableDefinition, reason: str) -> Malformed:
    return Malformed(f"these rows cannot seed table {definition.name}: {reason}")
