"""One task: the dead rows of one data file to its delete file.

1. find    the positions of the row versions that died
2. join    them with the positions of the delete file before
3. write   one delete file with all of them, which replaces it; its folder is synced by the caller

A row version may be in any file whose bounds have its number, so a task finds some of those that it
looks for, and says which. Whoever plans checks that every one was found once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.disk import is_full
from frazil.errors import Corrupt, Overloaded
from frazil.lake.files.object_store import open_store
from frazil.lake.files.parquet_schema import FIELD_ID
from frazil.lake.files.sink import ArrowSink
from frazil.lake.files.writer import DATA_FOLDER
from frazil.lake.keyed.handoff import DeadRef
from frazil.lake.keyed.row_positions import NOWHERE, RowPositions, read_row_positions
from frazil.lake.keyed.source import Longs
from frazil.lake.scan.position_deletes import PATH, PATH_ID, POSITION, POSITION_ID, read_positions

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

SCHEMA = pa.schema(
    [
        pa.field(
            PATH,
            pa.dictionary(pa.int32(), pa.string()),  # in memory; it is a string in the file
            nullable=False,
            metadata={FIELD_ID: str(PATH_ID)},
        ),
        pa.field(POSITION, pa.int64(), nullable=False, metadata={FIELD_ID: str(POSITION_ID)}),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRowsTask:
    """The input of a task."""

    path: str
    """URI of the data file."""
    deletes: str | None
    """URI of its delete file before."""
    dead: DeadRef
    location: str
    """URI of the table."""
    name: str
    """Prefix of the file name, unique per task and attempt."""
    io: FileIO = field(repr=False)
    """May contain passwords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDeletes:
    """A durable delete file with everything that a commit needs."""

    path: str
    """Relative to the table's location."""
    data_path: str
    row_count: int
    size_bytes: int
    last: int
    """The last position."""
    first: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeleteResult:
    """What a task has found."""

    path: str
    found: Longs
    """Numbers of the deaths that it has found, in the order of the hand-off."""
    file: WrittenDeletes | None
    """The new delete file, or None if it has found none."""


def delete_rows(
    work: DeleteRowsTask, positions_of: Callable[[str, FileIO], RowPositions] = read_row_positions
) -> DeleteResult:
    """Run a task. Raises `Corrupt` if a row has died before, `Overloaded` if a disk is full."""
    positions, found = find_positions(positions_of(work.path, work.io), *work.dead.read())
    if not len(found):
        return DeleteResult(path=work.path, found=found, file=None)
    both = np.concatenate([read_positions(work.deletes, work.io), np.sort(positions)])
    both.sort(kind="stable")  # two runs, which it merges
    doubled = np.count_nonzero(both[1:] == both[:-1])
    if doubled:
        raise Corrupt(
            path=work.path,
            position=0,
            expected="rows that are alive",
            found=f"{doubled} that died in an earlier snapshot",
            hint="The table is not changed; drop it: it is written again as a whole",
        )
    return DeleteResult(path=work.path, found=found, file=_write(work, both))


def find_positions(
    held: RowPositions, dead_partitions: Longs, dead_rows: Longs
) -> tuple[Longs, Longs]:
    """Return the positions of the dead rows in a file, and the numbers of these deaths."""
    positions: list[Longs] = [np.empty(0, np.int64)]
    found: list[Longs] = [np.empty(0, np.int64)]
    for number in np.unique(dead_partitions).tolist():
        begin, end = np.searchsorted(dead_partitions, (number, number + 1))
        at = held.look_up(number, dead_rows[begin:end])
        hits = np.flatnonzero(at != NOWHERE)
        positions.append(at[hits].astype(np.int64))
        found.append(begin + hits)
    return np.concatenate(positions), np.concatenate(found)


def _write(work: DeleteRowsTask, positions: Longs) -> WrittenDeletes:
    """Write a durable delete file."""
    table = pa.Table.from_arrays(
        [
            pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(len(positions), np.int32)), pa.array([work.path])
            ),
            pa.array(positions),
        ],
        schema=SCHEMA,
    )
    store = open_store(work.location, work.io)
    path = f"{DATA_FOLDER}/{work.name}-00000-deletes.parquet"
    with ExitStack() as undo:
        try:
            with closing(store.open(path, "create")) as file:
                undo.callback(_discard, store.unlink, path)
                sink = ArrowSink(file)
                with pq.ParquetWriter(
                    sink,
                    SCHEMA,
                    compression="zstd",
                    use_dictionary=[PATH],
                    column_encoding={POSITION: "DELTA_BINARY_PACKED"},
                    write_page_checksum=True,
                    store_schema=False,
                ) as writer:
                    writer.write_table(table)
                sink.drain()
                file.sync()
        except OSError as error:
            if not is_full(error):
                raise
            raise Overloaded(
                f"the disk is full: {len(positions)} deletes of {work.path} were not written; free "
                "disk space"
            ) from error
        undo.pop_all()
    return WrittenDeletes(
        path=path,
        data_path=work.path,
        row_count=len(positions),
        size_bytes=sink.tell(),
        first=int(positions[0]),
        last=int(positions[-1]),
    )


def _discard(unlink: Callable[[str], None], path: str) -> None:
    # A file that cannot be deleted becomes an orphan, as after a crash.
    with suppress(OSError):
        unlink(path)
