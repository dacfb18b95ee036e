"""External tables: files outside of the lake that queries read. `frazil.load` finds and fetches
them; a worker reads only files that this process has put into its cache."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from frazil.errors import Rejected
from frazil.results import tokens

if TYPE_CHECKING:
    from frazil.lake import TableFile


class ListedTable(Protocol):
    """The files of an external table, as they were listed for one query."""

    schema: pa.Schema
    root: str
    """The folder of fetched files."""
    files: tuple[TableFile, ...]
    """All files. Their row count is -1 if it is not known yet."""

    def measured(
        self, files: Sequence[TableFile], check: Callable[[], None]
    ) -> tuple[TableFile, ...]:
        """Return files with the bounds of their columns, where that is cheap."""

    def fetched(
        self,
        files: Sequence[TableFile],
        columns: Sequence[str] | None,
        check: Callable[[], None],
    ) -> tuple[TableFile, ...]:
        """Return files that are below `root` now and have at least these columns, with row counts
        and bounds. `Conflict` if one was overwritten since it was listed."""


class ExternalSource(Protocol):
    """All external tables."""

    def names(self) -> Collection[str]: ...

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table."""

    def listing(
        self, name: str, check: Callable[[], None], *, is_fresh: bool = False
    ) -> ListedTable:
        """List the files of a table. A list that is not `is_fresh` may be a few seconds old."""


def external_schemas(
    source: ExternalSource | None, text: str, *, is_listing: bool
) -> tuple[tuple[str, bytes], ...]:
    """Return the external tables that a text may name, and their schemas as Arrow IPC; all that can
    be read if it may list tables."""
    lower = text.lower()
    found = []
    for name in () if source is None else source.names():
        if not is_listing and name not in lower:
            continue
        try:
            found.append((name, source.schema(name).serialize().to_pybytes()))  # type: ignore[union-attr]
        except Rejected:
            if not is_listing and any(token.name == name for token in tokens(text)):
                raise
    return tuple(found)
