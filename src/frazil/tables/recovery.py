"""Opens what a partition has in files, after a stop or a crash.

    row segments that continue each other    kept, up to the first that is damaged
    files that another one covers            removed: a compaction did not finish
    key index as of an offset that is known  loaded; the rows after it are indexed
    otherwise                                the index is rebuilt from the segments

The log has everything from the end of the last segment on, and, without files, everything. A file
that was compacted lacks row versions that died below its horizon, so the log cannot be applied to
it before: if the files end below a horizon, none is used. Files that the log cannot replace stay
where they are until the partition is seeded.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from google_crc32c import value as crc32c

from frazil.disk import Disk, make_directories
from frazil.errors import Corrupt
from frazil.metrics import Counter
from frazil.tables.change_log import ChangeExtent
from frazil.tables.definition import TableDefinition
from frazil.tables.keys.index_file import NAME, IndexPosition, read_index
from frazil.tables.keys.kernels import Longs
from frazil.tables.keys.key_index import KeyIndex, KeyTable
from frazil.tables.rows.deaths import Deaths
from frazil.tables.rows.mapped_pages import MappedPages
from frazil.tables.rows.row_segment import RowSegment, key_width, rows_before, segment_of_batch
from frazil.tables.rows.segment_file import RowFile, open_rows, segment_path
from frazil.tables.state import PartitionState

logger = logging.getLogger(__name__)

SEGMENT_NAME = re.compile(r"(\d{20})\.rows")
UNREADABLE = frozenset({errno.EIO, errno.ENODATA, errno.EUCLEAN, errno.EBADMSG})
"""Errors that mean the disk lost the file's bytes. Others say nothing about the file."""

REBUILT = Counter("frazil.tables.rebuilt.files", "Files of keyed tables that were not usable.")


@dataclass(frozen=True, slots=True, eq=False)
class RecoveredState:
    """The state below an offset."""

    state: PartitionState
    files: list[RowFile]
    end_offset: int
    index_offset: int
    """The index file is as of this offset; -1 if there was none that could be used."""


def identity_of(definition: TableDefinition, partition: int) -> int:
    """Tie files to a partition of a table: a table created again has another id."""
    identity: int = crc32c(f"{definition.table_id}/{partition}".encode())
    return identity


def recover_partition(
    disk: Disk,
    folder: str,
    definition: TableDefinition,
    identity: int,
    log: ChangeExtent,
    pages: MappedPages,
) -> RecoveredState:
    """Return the state that is in files. Nothing in them may be beyond the end of the log."""
    make_directories(disk, folder)
    state = PartitionState(definition, pages)
    files = _open_chain(disk, folder, definition, identity, log)
    load_rows(state, files)
    end_offset = files[-1].header.end_offset if files else 0
    position = _load_index(disk, folder, state, identity, end_offset)
    doubled = index_rest(state, position)
    assert not len(doubled), "two live rows have one key"
    return RecoveredState(state, files, end_offset, -1 if position is None else position.offset)


def load_rows(state: PartitionState, files: Sequence[RowFile]) -> None:
    """Fill an empty state with the rows and deaths of files; not with keys."""
    state.deaths = Deaths(max((file.header.horizon for file in files), default=0))
    for file in files:
        state.put_sealed(segment_of_file(state.definition, file))
        state.deaths.add_sealed(file.deaths, file.header.end_death)
        state.row_count = file.header.end_row
    for file in files:
        state.index.table.put_bits(np.array(file.deaths.rows), is_live=False)


def segment_of_file(definition: TableDefinition, file: RowFile) -> RowSegment:
    header = file.header
    segment = segment_of_batch(definition, file.batch, header.base_row, header.definition)
    return replace(segment, numbers=file.numbers, mapped=file.mapped, location=file.location)


def _open_chain(
    disk: Disk, folder: str, definition: TableDefinition, identity: int, log: ChangeExtent
) -> list[RowFile]:
    """Return the segments that continue each other from offset 0. Removes all other files, if the
    log has what they had."""
    names = disk.list(folder)
    for name in names:
        if name.endswith(".tmp"):
            disk.unlink(f"{folder}/{name}")
    begins = [int(match[1]) for name in names if (match := SEGMENT_NAME.fullmatch(name))]
    files: list[RowFile] = []
    covered, unfit = [], []
    next_place = (0, 0, 0)
    for number, begin in enumerate(begins):
        if begin < next_place[0]:
            covered.append(begin)
            continue
        path = segment_path(folder, begin)
        try:
            file = open_rows(disk, path)
            _check_place(file, begin, next_place, identity)
            header = file.header
            if header.end_offset > log.last_stable_offset or header.definition > definition.version:
                found = f"offsets up to {header.end_offset}"
                raise _unfit(path, f"up to {log.last_stable_offset}", found)
        except (Corrupt, OSError) as error:
            if isinstance(error, OSError) and error.errno not in UNREADABLE:
                raise
            logger.warning("row segment rebuilt", extra={"path": path, "reason": str(error)})
            unfit = begins[number:]
            break
        files.append(file)
        next_place = (header.end_offset, header.end_row, header.end_death)
    if _end_below_horizon(files):
        logger.warning("row segments end below their horizon", extra={"path": folder})
        unfit = [*(file.header.begin_offset for file in files), *covered, *unfit]
        files, covered = [], []
    end_offset = files[-1].header.end_offset if files else 0
    REBUILT.add(len(unfit))
    removed = covered if log.start_offset > end_offset else [*covered, *unfit]
    for begin in removed:
        disk.unlink(segment_path(folder, begin))
    if removed:
        disk.sync_directory(folder)
    return files


def _end_below_horizon(files: Sequence[RowFile]) -> bool:
    """Return whether the log would be applied to files that lack what it changes."""
    return any(file.header.horizon > files[-1].header.end_offset for file in files)


def _check_place(
    file: RowFile, begin: int, next_place: tuple[int, int, int], identity: int
) -> None:
    header = file.header
    place = (header.begin_offset, header.base_row, header.base_death)
    if (header.identity, begin) != (identity, header.begin_offset) or place != next_place:
        raise _unfit(file.path, f"a segment at {next_place}", f"one at {place}")


def _unfit(path: str, expected: str, found: str) -> Corrupt:
    return Corrupt(path=path, position=0, expected=expected, found=found, hint="It is rebuilt.")


def _load_index(
    disk: Disk,
    folder: str,
    state: PartitionState,
    identity: int,
    end_offset: int,
) -> IndexPosition | None:
    """Load the index file into the state, if it is as of an offset that the segments know."""
    table = state.index.table
    try:
        position = read_index(disk, folder, identity, state.index)
        if position is None:
            return None
        if state.deaths.horizon <= position.offset <= end_offset:
            row = rows_before(state.segments, position.offset)
            counts = (state.row_count if row is None else row, state.deaths.before(position.offset))
            if counts == (position.row_count, position.death_count):
                return position
        reason = f"the row segments do not have offset {position.offset}, or not like this"
    except (Corrupt, OSError) as error:
        if isinstance(error, OSError) and error.errno not in UNREADABLE:
            raise
        reason = str(error)
    logger.warning("key index rebuilt", extra={"path": f"{folder}/{NAME}", "reason": reason})
    REBUILT.add()
    state.index = _empty_index(state, table)
    return None


def _empty_index(state: PartitionState, table: KeyTable) -> KeyIndex:
    index = KeyIndex(key_width(state.definition), state.definition.seed)
    index.table = table
    return index


def index_rest(state: PartitionState, position: IndexPosition | None) -> Longs:
    """Bring the index from a position to the end: remove rows that died since, then put those that
    were made since and are live. Returns rows that have the key of another live one: none, unless
    the files are wrong."""
    rows = 0
    if position is not None:
        rows = position.row_count
        died = state.deaths.between(position.death_count, state.deaths.count).rows
        state.index.remove_rows(np.array(died[died < rows]))
    doubled = []
    for segment in state.segments:
        first = segment.count_below(rows)
        if first == segment.batch.num_rows:
            continue
        positions = first + np.flatnonzero(segment.is_live[first:])
        hashes = segment.keys.hashes(state.index.seed)[positions]
        numbers = segment.rows[positions]
        doubled.append(state.index.put(segment.keys, hashes, positions, numbers).rows)
        if segment.mapped is not None:
            segment.mapped.release()
    return np.concatenate(doubled) if doubled else np.empty(0, np.int64)
