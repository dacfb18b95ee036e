"""Fields: names that a search can use, for completion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import pyarrow as pa

from frazil.model import doc
from frazil.model.arrow import SERVICE_NAME, TABLES
from frazil.query.search.filters import (
    ALWAYS,
    ATTRIBUTE,
    RESOURCE,
    SCOPE,
    Ask,
    TimeRange,
    attribute_name,
    bounded,
    where,
)
from frazil.query.search.to_sql import COMPUTED_NAMES, is_reserved

SAMPLE_ROWS = 1000
"""Newest rows whose attributes are listed. Other attributes can be searched, too."""
LIMIT_MAX = 1000
KEYS_MAX = 10_000
"""Distinct attribute keys that are counted."""

Kind = Literal["column", "attribute", "resource", "scope"]
_MAPS: tuple[tuple[Kind, str], ...] = (
    ("attribute", "attributes"),
    ("resource", "resource_attributes"),
    ("scope", "scope_attributes"),
)

_HIDDEN = frozenset({"level", "duration_ms"})
"""Aliases of listed names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedField:
    """A field name that the search box and filters accept."""

    name: str
    kind: Kind
    count: Annotated[int | None, doc("Of the newest 1000 rows; null for columns.")]


def fields_of(
    ask: Ask, table: str, *, prefix: str = "", within: TimeRange = ALWAYS, limit: int = 100
) -> list[NamedField]:
    """List columns, then attributes of the newest rows by frequency. `prefix` matches the name or
    a dotted part of it: `route` finds `http.route`."""
    bounded(limit, "limit", LIMIT_MAX)
    fields = [*_columns(table), *_attributes(ask, table, within)]
    return [field for field in fields if _begins(field.name.casefold(), prefix.casefold())][:limit]


def _begins(name: str, prefix: str) -> bool:
    return name.startswith(prefix) or f".{prefix}" in name


def _columns(table: str) -> Iterator[NamedField]:
    names = [field.name for field in TABLES[table] if not pa.types.is_nested(field.type)]
    for name in (*COMPUTED_NAMES.get(table, ()), *names):
        if not name.startswith("_") and name not in _HIDDEN:
            yield NamedField(name=name, kind="column", count=None)


def _attributes(ask: Ask, table: str, within: TimeRange) -> list[NamedField]:
    keys = ", ".join(f"map_keys({column}) AS {kind}" for kind, column in _MAPS)
    rows = ask(
        f"SELECT time, {keys} FROM {table} {where(within.conditions())} "
        f"ORDER BY time DESC LIMIT {SAMPLE_ROWS}"
    )
    counts: Counter[tuple[Kind, str]] = Counter()
    for kind, _ in _MAPS:
        for chunk in rows[kind].chunks:
            for counted in chunk.flatten().value_counts()[:KEYS_MAX].to_pylist():
                counts[kind, counted["values"]] += counted["counts"]
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        NamedField(
            name=_name(table, kind, key, is_shadowed=("attribute", key) in counts),
            kind=kind,
            count=count,
        )
        for (kind, key), count in ordered
    ]


def _name(table: str, kind: Kind, key: str, *, is_shadowed: bool) -> str:
    """Return the shortest name of an attribute. An attribute of the record shadows one of the
    resource that has the same key."""
    if kind == "scope":
        return SCOPE + key
    computed = {key: ""} if is_reserved(table, key) else {}
    if kind == "attribute":
        return attribute_name(key, TABLES[table], computed)
    is_plain = key == SERVICE_NAME or attribute_name(key, TABLES[table], computed) == key
    return key if is_plain and not is_shadowed else RESOURCE + key


def ambiguity_notes(fields: Sequence[NamedField], names: Iterable[str]) -> list[str]:
    """Say which of the names are attributes of records as well as of resources."""
    known = {field.name for field in fields}
    return [
        f"{name} is an attribute of records and of resources, and the value of the record is used "
        f"first; write {ATTRIBUTE}{name} or {RESOURCE}{name} for one of them"
        for name in dict.fromkeys(names)
        if name in known and RESOURCE + name in known
    ]
