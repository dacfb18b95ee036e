"""CopyTarget: the table that files are loaded into, planned but not changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from frazil.lake import LoadChange, LoadedFile
from frazil.load.copy.row_checks import KeyedRows

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset


class RowWriter(Protocol):
    """Writes the rows of one task, so that they are durable."""

    def write(self, rows: pa.Table) -> None:
        """Add rows of the current file."""

    def end_file(self) -> None:
        """Keep the rows of the current file."""

    def drop_file(self) -> None:
        """Forget the rows of the current file."""

    def finish(self) -> tuple[LoadedFile, ...]:
        """Write the rest, and return all files."""
        ...

    def discard(self) -> None:
        """Delete all files, as far as possible."""


OpenWriter = Callable[[str], RowWriter]
"""Called in a task, with a name that is unique to its attempt."""
OpenRows = Callable[[], "Dataset | pa.Table"]
"""Called in a task."""


class CopyTarget(Protocol):
    """Owned by one thread."""

    @property
    def schema(self) -> pa.Schema:
        """What files are read as."""

    @property
    def ledger(self) -> pa.Table:
        """The files that the table has, or that were skipped."""

    @property
    def is_new(self) -> bool: ...

    @property
    def keyed(self) -> KeyedRows | None:
        """What its rows must be, if it is a keyed table."""

    def writer(self) -> OpenWriter:
        """Return what writes rows, in tasks."""
        ...

    def rows(self, files: Sequence[LoadedFile]) -> OpenRows:
        """Return what reads rows that were written, in a task."""
        ...

    def commit(self, change: LoadChange) -> int | None:
        """Put all rows into the table. Returns the snapshot, if it has snapshots. `LoadConflict`
        if another load came first: plan again."""
        ...

    def discard(self, files: Sequence[LoadedFile]) -> None:
        """Delete rows that will not be committed."""
