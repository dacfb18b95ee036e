"""Keyed tables as queries see them: their columns, and one moment of each for one query.

A query pins a view of every keyed table that its text may name before it is planned: columns and
rows belong together, also if the table is altered or dropped meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from frazil.errors import Malformed, Unavailable, Unknown
from frazil.query.sql.changes import OFFSET_FIELD
from frazil.results import tokens

if TYPE_CHECKING:
    from frazil.tables import KeyedView, TableDefinition, Token


class KeyedViews(Protocol):
    """The keyed tables of a node. Any thread may use it."""

    def names(self) -> list[str]: ...

    def definition(self, name: str) -> TableDefinition: ...

    def view(self, name: str) -> KeyedView: ...

    def offsets_at(self, name: str, time_ms: int) -> Token:
        """Return the offsets up to which changes had been written at a time."""

    def load_history(self) -> Iterable[tuple[str, pa.Table]]:
        """Return the tables that were loaded from files, each with its ledger."""


class NoKeyedTables:
    """A node without keyed tables."""

    def names(self) -> list[str]:
        return []

    def definition(self, name: str) -> TableDefinition:
        raise Unknown(f"there is no table {name}")

    def view(self, name: str) -> KeyedView:
        raise Unknown(f"there is no table {name}")

    def offsets_at(self, name: str, time_ms: int) -> Token:
        raise Unknown(f"there is no table {name}")

    def load_history(self) -> Iterable[tuple[str, pa.Table]]:
        return ()


def keyed_schema(definition: TableDefinition) -> pa.Schema:
    """Return the columns of a keyed table in SQL."""
    return pa.schema([*definition.schema, OFFSET_FIELD])


class KeyedPins:
    """The views of keyed tables for one query. Owned by the thread that starts it."""

    def __init__(self, source: KeyedViews, views: Mapping[str, KeyedView] | None = None) -> None:
        """`views` are those that are pinned already."""
        self.source = source
        self.views = dict(views or {})

    def tables(self, text: str, *, is_listing: bool) -> tuple[tuple[str, bytes], ...]:
        """Pin the tables that a text may name, or all; return them with their schemas."""
        named = _named(text, self.source.names())
        for name in self.source.names() if is_listing else named:
            # Dropped meanwhile; or it cannot be read, which is no matter if it is only listed.
            with suppress(Unknown) if name in named else suppress(Unknown, Unavailable):
                if name not in self.views:
                    self.views[name] = self.source.view(name)
        return tuple(
            (name, keyed_schema(view.definition).serialize().to_pybytes())
            for name, view in self.views.items()
        )

    def without(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those names that are not of keyed tables: the lake has these as well."""
        keyed = {*self.source.names(), *self.views}
        return tuple(name for name in names if name not in keyed)


def _named(text: str, names: Iterable[str]) -> set[str]:
    """Return the tables that a text names: as a word, in quotes, or in `changes('t', …)`."""
    lower = text.lower()
    near = {name for name in names if name.lower() in lower}
    if not near:
        return set()
    found = {token.name for token in tokens(text) if token.kind in ("word", "quoted")}
    return {name for name in near if name in found or f"'{name}'" in text}


def refuse_bare_names(text: str, names: Iterable[str], place: str) -> None:
    """Raise `Malformed` if a text for Spark names a keyed table as if Spark had its rows of now.
    `place`: catalog and namespace of its Iceberg table."""
    known, before = set(names), ""
    for token in tokens(text):
        if token.name in known and before in ("from", "join"):
            raise Malformed(
                f"{token.name} is a keyed table, of which Spark has what is frozen: write "
                f"{place}.{token.name}, or leave out the engine to read the rows of now"
            )
        before = token.name
