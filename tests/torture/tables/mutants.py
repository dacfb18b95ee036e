"""Deliberate bugs in keyed tables. The simulation must detect every one.

None of them lets compiled code read memory that is not there: that would end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from frazil.tables import fold, recovery, state
from frazil.tables.rows.segment_file import RowFileHeader
from frazil.tables.state import PartitionState

Patches = list[Any]


def _rest_not_indexed() -> Patches:
    """Do not index the segments after the saved index."""
    original = recovery._index_rest

    def index_rest(of: PartitionState, position: Any) -> None:
        if position is None:
            original(of, position)

    return [mock.patch.object(recovery, "_index_rest", index_rest)]


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


MUTANTS: dict[str, Callable[[], Patches]] = {
    "rest_not_indexed": _rest_not_indexed,
    "deaths_at_once": _deaths_at_once,
    "sealed_too_far": _sealed_too_far,
    "absent_rows_updated": _absent_rows_updated,
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for patch in MUTANTS[name]():
            stack.enter_context(patch)
        yield
