"""Opens what a partition has in files, after a stop or a crash.

    row segments that continue each other    kept, up to the first that is damaged
    key index as of the end of one of them   loaded; the segments after it are indexed
    otherwise                                the index is rebuilt from the segments

The log has everything from the end of the last segment on, and, without files, everything.
"""

from __future__ import annotations

import errno
import logging
import re
from dataclasses import dataclass

import numpy as np
from google_crc32c import value as crc32c

from frazil.disk import Disk, make_directories
from frazil.errors import Corrupt
from frazil.metrics import Counter
from frazil.tables.definition import TableDefinition
from frazil.tables.keys import kernels
from frazil.tables.keys.index_file import NAME, IndexPosition, read_index
from frazil.tables.keys.key_index import KeyIndex, KeyTable
from frazil.tables.rows.row_segment import key_width, segment_of_batch
from frazil.tables.rows.segment_file import RowFile, location_of, open_rows, segment_path
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
    end_offset: int
    is_index_loaded: bool


def identity_of(definition: TableDefinition, partition: int) -> int:
    """Tie files to a partition of a table: a table created again has another id."""
    identity: int = crc32c(f"{definition.table_id}/{partition}".encode())
    return identity


def recover_partition(
    disk: Disk, folder: str, definition: TableDefinition, identity: int, log_end: int
) -> RecoveredState:
    """Return the state that is in files. `log_end`: nothing in the files may be beyond it."""
    make_directories(disk, folder)
    state = PartitionState(definition)
    files = _open_chain(disk, folder, definition, identity, log_end)
    for file in files:
        version = file.header.definition
        location = location_of(disk, file)
        segment = segment_of_batch(definition, file.batch, state.row_count, version, location)
        state.put_sealed(segment)
        state.deaths.add_sealed(file.deaths)
        state.row_count += file.batch.num_rows
    state.reserve(state.row_count)
    _set_live(state)
    end_offset = files[-1].header.end_offset if files else 0
    ends = {0: (0, 0)}
    for file in files:
        header = file.header
        ends[header.end_offset] = (
            header.base_row + header.row_count,
            header.base_death + header.death_count,
        )
    position = _load_index(disk, folder, state, identity, ends)
    _index_rest(state, position)
    return RecoveredState(state, end_offset, position is not None)


def _open_chain(
    disk: Disk, folder: str, definition: TableDefinition, identity: int, log_end: int
) -> list[RowFile]:
    """Return the segments that continue each other from offset 0. Removes all other files."""
    names = disk.list(folder)
    for name in names:
        if name.endswith(".tmp"):
            disk.unlink(f"{folder}/{name}")
    begins = [int(match[1]) for name in names if (match := SEGMENT_NAME.fullmatch(name))]
    files: list[RowFile] = []
    next_place = (0, 0, 0)
    for number, begin in enumerate(begins):
        path = segment_path(folder, begin)
        try:
            file = open_rows(disk, path)
            header = file.header
            place = (header.begin_offset, header.base_row, header.base_death)
            if (header.identity, begin) != (identity, header.begin_offset) or place != next_place:
                raise _unfit(path, f"a segment at {next_place}", f"one at {place}")
            if header.end_offset > log_end or header.definition > definition.version:
                raise _unfit(path, f"offsets up to {log_end}", f"up to {header.end_offset}")
        except (Corrupt, OSError) as error:
            if isinstance(error, OSError) and error.errno not in UNREADABLE:
                raise
            logger.warning("row segment rebuilt", extra={"path": path, "reason": str(error)})
            REBUILT.add(len(begins) - number)
            for dropped in begins[number:]:
                disk.unlink(segment_path(folder, dropped))
            disk.sync_directory(folder)
            break
        files.append(file)
        next_place = (
            header.end_offset,
            header.base_row + header.row_count,
            header.base_death + header.death_count,
        )
    return files


def _unfit(path: str, expected: str, found: str) -> Corrupt:
    return Corrupt(path=path, position=0, expected=expected, found=found, hint="It is rebuilt.")


def _set_live(state: PartitionState) -> None:
    rows = state.row_count
    state.live[: rows // 8] = 0xFF
    if rows % 8:
        state.live[rows // 8] = (1 << rows % 8) - 1
    kernels.clear_bits(state.live, np.array(state.deaths.between(0, state.deaths.count).rows))


def _load_index(
    disk: Disk,
    folder: str,
    state: PartitionState,
    identity: int,
    ends: dict[int, tuple[int, int]],
) -> IndexPosition | None:
    """Load the index file into the state, if it is as of the end of a segment."""
    table = state.index.table
    try:
        position = read_index(disk, folder, identity, state.index)
        if position is None:
            return None
        if ends.get(position.offset) == (position.row_count, position.death_count):
            return position
        reason = f"no row segment ends at {position.offset}"
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


def _index_rest(state: PartitionState, position: IndexPosition | None) -> None:
    """Bring the index from a position to the end: remove rows that died since, then put those that
    were made since and are live."""
    rows, deaths = (position.row_count, position.death_count) if position else (0, 0)
    died = state.deaths.between(deaths, state.deaths.count).rows
    state.index.remove_rows(np.array(died[died < rows]))
    for segment in state.segments:
        if segment.end_row <= rows:
            continue
        first = max(0, rows - segment.base_row)
        bits = np.unpackbits(
            state.live[segment.base_row // 8 : segment.end_row // 8 + 1], bitorder="little"
        )
        skipped = segment.base_row % 8
        is_live = bits[skipped : skipped + segment.batch.num_rows]
        positions = first + np.flatnonzero(is_live[first:])
        hashes = segment.keys.hashes(state.index.seed)[positions]
        killed = state.index.put(segment.keys, hashes, positions, segment.base_row, state.live)
        assert not len(killed.rows), "two live rows have one key"
