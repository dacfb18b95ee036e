"""Which row files are worth rewriting, and what is left of them.

Row versions that died below the horizon are in no view that anyone may ask for. They go when they
are a large part of their file, and so do the deaths of row versions that are gone. Adjacent small
files become one in any case. What stays keeps its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from frazil.tables.definition import TableDefinition
from frazil.tables.keys.kernels import Bits, Longs
from frazil.tables.rows.deaths import DeathList, Deaths
from frazil.tables.rows.row_segment import (
    RowSegment,
    base_rows,
    empty_batch,
    stored_schema,
    upgraded,
)
from frazil.tables.rows.segment_file import DEATH_BYTES, RowFile, RowFileHeader

DEAD_SHARE = 0.3
"""Of a file, in rows or in bytes: from here on it is rewritten."""
SMALL_SHARE = 4
"""A file is small if it is this many times smaller than what is sealed at once."""
SMALL_FILES = 8
"""So many adjacent small files become one."""
OUTPUT_SHARE = 2
"""A rewritten file is at most this many times larger than what is sealed at once."""

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class CompactedRows:
    """What is left of adjacent files."""

    header: RowFileHeader
    batch: pa.RecordBatch
    numbers: Longs | None
    live: Bits
    """One bit per position."""
    deaths: DeathList


@dataclass(frozen=True, slots=True, eq=False)
class _Waste:
    """What could go, by file."""

    dead_rows: Longs
    gone_deaths: Longs
    """Deaths of row versions that are gone, or go together with them."""


def choose_files(
    files: Sequence[RowFile],
    segments: Sequence[RowSegment],
    deaths: Deaths,
    horizon: int,
    seal_bytes: int,
) -> tuple[int, int] | None:
    """Return the range of adjacent files whose rewriting saves most; None if none is worth it."""
    waste = _measure(files, segments, deaths, horizon)
    best, best_score = None, 0.0
    begin = 0
    while begin < len(files):
        end, size, saved = begin, 0.0, 0.0
        has_worn = False
        while end < len(files):
            wasted = _wasted_bytes(files[end], waste, end)
            left = files[end].size_bytes - wasted
            is_worn = _is_worn(files[end], waste, end, wasted)
            if not is_worn and left * SMALL_SHARE >= seal_bytes:
                break
            if end > begin and size + left > OUTPUT_SHARE * seal_bytes:
                break
            size, saved, has_worn = size + left, saved + wasted, has_worn or is_worn
            end += 1
        # Fewer files are worth something, too, but less than any byte.
        score = saved + (end - begin) / (len(files) + 1)
        if (has_worn or end - begin >= SMALL_FILES) and score > best_score:
            best, best_score = (begin, end), score
        begin = max(end, begin + 1)
    return best


def _is_worn(file: RowFile, waste: _Waste, number: int, wasted: float) -> bool:
    dead = int(waste.dead_rows[number])
    if dead and dead >= DEAD_SHARE * file.header.row_count:
        return True
    return wasted > 0 and wasted >= DEAD_SHARE * file.size_bytes


def _wasted_bytes(file: RowFile, waste: _Waste, number: int) -> float:
    share = int(waste.dead_rows[number]) / max(1, file.header.row_count)
    row_bytes = file.size_bytes - DEATH_BYTES * file.header.death_count
    return share * row_bytes + DEATH_BYTES * int(waste.gone_deaths[number])


def _measure(
    files: Sequence[RowFile], segments: Sequence[RowSegment], deaths: Deaths, horizon: int
) -> _Waste:
    ends = np.array([file.header.end_row for file in files], np.int64)
    dead_rows, gone_deaths = np.zeros(len(files), np.int64), np.zeros(len(files), np.int64)
    for number, part in enumerate(deaths.sealed):
        below = part.rows[: int(np.searchsorted(part.offsets, horizon))]
        owners = np.searchsorted(ends, below, side="right")
        is_there = are_present(segments, below)
        dead_rows += np.bincount(owners[is_there], minlength=len(files))
        gone_deaths[number] = np.count_nonzero(~is_there | (owners == number))
    return _Waste(dead_rows, gone_deaths)


def are_present(segments: Sequence[RowSegment], rows: Longs) -> Mask:
    """Return which row versions are in one of the segments."""
    is_there = np.zeros(len(rows), np.bool_)
    if not segments or not len(rows):
        return is_there
    owners = np.searchsorted(base_rows(segments), rows, side="right") - 1
    order = np.argsort(owners, kind="stable")
    firsts = np.flatnonzero(np.diff(owners[order], prepend=-2))
    for begin, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(rows)], strict=True):
        positions = order[begin:end]
        owner = int(owners[positions[0]])
        if owner >= 0:
            is_there[positions] = segments[owner].has(rows[positions])
    return is_there


def compacted_rows(
    definition: TableDefinition,
    files: Sequence[RowFile],
    segments: Sequence[RowSegment],
    deaths: Deaths,
    chosen: tuple[int, int],
    horizon: int,
) -> CompactedRows:
    """Return what is left of the chosen files. `segments`: of all sealed files."""
    begin, end = chosen
    first, last = files[begin].header, files[end - 1].header
    mine = [s for s in segments if first.base_row <= s.base_row < last.end_row]
    others = [s for s in segments if not first.base_row <= s.base_row < last.end_row]
    gone, forgotten = _dead_rows(deaths, first.base_row, last.end_row, horizon)
    lists = []
    for part in deaths.sealed[begin:end]:
        is_kept = (part.offsets >= horizon) | are_present(others, part.rows)
        forgotten = max(forgotten, int(part.offsets[~is_kept].max(initial=-1)) + 1)
        lists.append(part.where(is_kept))
    kept_deaths = DeathList(*(np.concatenate(columns) for columns in zip(*lists, strict=True)))
    schema = stored_schema(definition)
    batches, numbers, bits = [], [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
    for segment in mine:
        rows = segment.rows
        is_left = ~np.isin(rows, gone, assume_unique=True)
        batches.append(upgraded(segment.batch, schema).filter(pa.array(is_left)))
        numbers.append(rows[is_left])
        bits.append(segment.is_live[is_left])
    batch = pa.concat_batches(batches) if batches else empty_batch(schema)
    header = RowFileHeader(
        identity=first.identity,
        begin_offset=first.begin_offset,
        end_offset=last.end_offset,
        base_row=first.base_row,
        end_row=last.end_row,
        base_death=first.base_death,
        end_death=last.end_death,
        row_count=batch.num_rows,
        death_count=len(kept_deaths.rows),
        definition=definition.version,
        horizon=max(forgotten, *(file.header.horizon for file in files[begin:end])),
    )
    return CompactedRows(
        header,
        batch,
        np.concatenate(numbers) if header.has_gaps else None,
        np.packbits(np.concatenate(bits), bitorder="little"),
        kept_deaths,
    )


def _dead_rows(deaths: Deaths, begin_row: int, end_row: int, horizon: int) -> tuple[Longs, int]:
    """Return the row versions of a range of numbers that died below an offset, and the first offset
    as of which none of them is live."""
    parts, after = [np.empty(0, np.int64)], 0
    for part in deaths.sealed:
        below = part.part(0, int(np.searchsorted(part.offsets, horizon)))
        is_mine = (below.rows >= begin_row) & (below.rows < end_row)
        parts.append(below.rows[is_mine])
        after = max(after, int(below.offsets[is_mine].max(initial=-1)) + 1)
    return np.concatenate(parts), after
