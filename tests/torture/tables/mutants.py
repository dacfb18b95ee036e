"""Deliberate bugs in keyed tables. The simulation must detect every one.

None of them lets compiled code read memory that is not there: that would end the process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

from frazil.tables import compaction, fold, recovery, seed, state
from frazil.tables.rows.deaths import DeathList, Deaths
from frazil.tables.rows.segment_file import RowFileHeader
from frazil.tables.state import PartitionState
from frazil.tables.view import RowsView

Patches = list[Any]


def _rest_not_indexed() -> Patches:
    """Do not index the segments after the saved index."""
    original = recovery.index_rest

    def index_rest(of: PartitionState, position: Any) -> Any:
        return original(of, position) if position is None else np.empty(0, np.int64)

    return [mock.patch.object(recovery, "index_rest", index_rest)]


def _deaths_at_once() -> Patches:
    """Give every death the offset of the first one of its batch."""
    original = PartitionState._delete

    def delete(self: PartitionState, keys: Any, offsets: Any) -> None:
        offsets = offsets.copy()
        offsets[:] = 0
        original(self, keys, offsets)

    return [mock.patch.object(PartitionState, "_delete", delete)]


def _sealed_too_far() -> Patches:
    """Say that a segment has one offset more than it has."""
    original = RowFileHeader

    def header(**fields: Any) -> Any:
        return original(**{**fields, "end_offset": fields["end_offset"] + 1})

    return [mock.patch.object(fold, "RowFileHeader", header)]


def _absent_rows_updated() -> Patches:
    """Take the first row for an update of a key that does not exist."""
    return [mock.patch.object(state, "NO_ROW", -2)]


def _horizon_ignored() -> Patches:
    """Apply the log to compacted files that end below their horizon."""
    return [mock.patch.object(recovery, "_end_below_horizon", lambda _: False)]


def _horizon_not_kept() -> Patches:
    """Remove everything that is dead, whatever the horizon is."""
    original = compaction._dead_rows

    def dead_rows(deaths: Any, begin_row: int, end_row: int, _: int) -> Any:
        return original(deaths, begin_row, end_row, 1 << 60)

    return [mock.patch.object(compaction, "_dead_rows", dead_rows)]


def _horizon_not_told() -> Patches:
    """Let a compacted file say that it has the whole past."""

    def header(**fields: Any) -> Any:
        return RowFileHeader(**{**fields, "horizon": min(1, fields["horizon"])})

    return [mock.patch.object(compaction, "RowFileHeader", header)]


def _rows_numbered_again() -> Patches:
    """Close the gaps in the numbers."""
    original = compaction.compacted_rows

    def compacted_rows(*arguments: Any) -> Any:
        rows = original(*arguments)
        if rows.numbers is None:
            return rows
        numbers = rows.header.base_row + np.arange(len(rows.numbers))
        return dataclasses.replace(rows, numbers=numbers)

    return [mock.patch.object(fold, "compacted_rows", compacted_rows)]


def _dead_revived() -> Patches:
    """Let a compaction forget which of the rows that it keeps are dead."""
    original = compaction.compacted_rows

    def compacted_rows(*arguments: Any) -> Any:
        rows = original(*arguments)
        return dataclasses.replace(rows, live=np.full_like(rows.live, 0xFF))

    return [mock.patch.object(fold, "compacted_rows", compacted_rows)]


def _deaths_since_missed() -> Patches:
    """Let a held view not learn what died after a compaction."""

    def since(self: Deaths, begin: int) -> DeathList:
        return self.between(begin, self.count)

    return [mock.patch.object(Deaths, "since", since)]


def _keys_of_now() -> Patches:
    """Let a held view look for its keys in the segments of now."""

    def table(self: Any) -> Any:
        return self._state.index.table

    return [mock.patch.object(RowsView, "_table", property(table))]


def _seed_numbers_low() -> Patches:
    """Number the rows after a seed from its last row on."""
    original: Any = seed._write_files

    def write_files(*arguments: Any) -> Any:
        *others, runs, end_offset, _ = arguments
        rows = [int(run.batch["_row"].to_numpy().max(initial=-1)) for run in runs]
        return original(*others, runs, end_offset, max(rows, default=-1) + 1)

    return [mock.patch.object(seed, "_write_files", write_files)]


MUTANTS: dict[str, Callable[[], Patches]] = {
    "rest_not_indexed": _rest_not_indexed,
    "deaths_at_once": _deaths_at_once,
    "sealed_too_far": _sealed_too_far,
    "absent_rows_updated": _absent_rows_updated,
    "horizon_ignored": _horizon_ignored,
    "horizon_not_kept": _horizon_not_kept,
    "horizon_not_told": _horizon_not_told,
    "rows_numbered_again": _rows_numbered_again,
    "dead_revived": _dead_revived,
    "deaths_since_missed": _deaths_since_missed,
    "keys_of_now": _keys_of_now,
    "seed_numbers_low": _seed_numbers_low,
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for patch in MUTANTS[name]():
            stack.enter_context(patch)
        yield
