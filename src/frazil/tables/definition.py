"""TableDefinition: columns, types, primary key and partitions of a keyed table.

Key and partitions never change. Columns are added and widened: each change is a new version, and
the earlier ones stay, because records of the log name the version they were written with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal
from uuid import UUID

import msgspec
import pyarrow as pa
from pyarrow import types

from frazil.errors import Malformed, TooLarge, Unknown
from frazil.model import Rand

OFFSET = "_offset"
"""The offset of the change that made a row version."""
KEY = "_key"
"""The canonical key, where no column is one."""
CHANGE = "_change"
ROW = "_row"
"""The number of a row version in its partition."""
TIME = "_time"
"""When a change was written."""
BY = "_by"
"""Who wrote a change."""
RESERVED = frozenset({OFFSET, KEY, CHANGE, ROW, TIME, BY, "_log_partition"})
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
COLUMNS_MAX = 1000
KEY_COLUMNS_MAX = 16
PARTITIONS_MAX = 256
VERSIONS_MAX = 10_000
DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
DECIMAL_DIGITS_MAX = 38

TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
UNFIT_FOR_KEYS = {
    "bool": "it has two values",
    "float32": "equal numbers may differ in their bits",
    "float64": "equal numbers may differ in their bits",
}
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32")
"""Not up to uint64: in Iceberg that is a decimal, which integers cannot become."""


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column, in one version."""

    id: int
    name: str
    type: str
    is_nullable: bool = True

    def field(self, *, is_nullable: bool | None = None) -> pa.Field:
        nullable = self.is_nullable if is_nullable is None else is_nullable
        return pa.field(self.name, arrow_type(self.type), nullable)


class TableFeed(msgspec.Struct, frozen=True, kw_only=True):
    """The topic whose records are the changes of a table. Nothing else writes to the table."""

    topic: str
    format: Literal["upsert", "debezium"]
    topic_id: UUID | None = None
    """A topic that was created again under this name is another one."""
    starts: tuple[int, ...] = ()
    """The first offset of each partition when the table was created."""


class TableDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A keyed table. `versions` has all columns of each version."""

    name: str
    table_id: UUID
    key: tuple[str, ...]
    partitions: int
    versions: tuple[tuple[TableColumn, ...], ...]
    feed: TableFeed | None = None

    @property
    def version(self) -> int:
        return len(self.versions) - 1

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        return self.versions[-1]

    @property
    def topic(self) -> str:
        """The topic of the changes."""
        return topic_of(self.name) if self.feed is None else self.feed.topic

    @property
    def seed(self) -> int:
        """Of the hash of keys."""
        return int.from_bytes(self.table_id.bytes[:8], "little", signed=True)

    @property
    def schema(self) -> pa.Schema:
        """The columns as queries see them."""
        return pa.schema([column.field() for column in self.columns])

    @property
    def key_columns(self) -> tuple[TableColumn, ...]:
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    def columns_of(self, version: int, ids: Sequence[int]) -> tuple[TableColumn, ...]:
        """Return columns of a version. Raises `Unknown` if there is no such version or column."""
        if not 0 <= version < len(self.versions):
            raise Unknown(f"table {self.name} has no version {version}, only {self.version + 1}")
        by_id = {column.id: column for column in self.versions[version]}
        missing = [number for number in ids if number not in by_id]
        if missing:
            raise Unknown(f"version {version} of table {self.name} has no column {missing[0]}")
        return tuple(by_id[number] for number in ids)

    def add_column(self, name: str, kind: str) -> TableDefinition:
        """Return the definition with one more column, null in rows that exist."""
        number = 1 + max(column.id for version in self.versions for column in version)
        column = TableColumn(id=number, name=name, type=kind)
        return self._with((*self.columns, column))

    def widen_column(self, name: str, kind: str) -> TableDefinition:
        """Return the definition with a column of a wider type."""
        by_name = {column.name: column for column in self.columns}
        if name not in by_name:
            raise Unknown(f"table {self.name} has no column {name}")
        if name in self.key:
            raise Malformed(f"column {name} is part of the key, whose types never change")
        before = by_name[name].type
        arrow_type(kind)
        if not is_wider(before, kind):
            raise Malformed(
                f"column {name} cannot change from {before} to {kind}: only to a type that has all "
                "of its values, and that Iceberg can read it as"
            )
        widened = msgspec.structs.replace(by_name[name], type=kind)
        columns = [widened if column.name == name else column for column in self.columns]
        return self._with(tuple(columns))

    def _with(self, columns: tuple[TableColumn, ...]) -> TableDefinition:
        if len(self.versions) >= VERSIONS_MAX:
            raise TooLarge(f"table {self.name} was changed {VERSIONS_MAX} times, the limit")
        changed = msgspec.structs.replace(self, versions=(*self.versions, columns))
        check_definition(changed)
        return changed


def topic_of(table: str) -> str:
    """Return the topic of a table's changes. Topics that begin so are internal: no client of the
    Kafka port writes to them, and the lake does not copy them."""
    return f"__table_{table}"


def new_definition(
    name: str,
    columns: Sequence[tuple[str, str]],
    key: Sequence[str],
    *,
    rand: Rand,
    partitions: int = 1,
    not_null: Sequence[str] = (),
    feed: TableFeed | None = None,
) -> TableDefinition:
    """Return the definition of a new table. Raises `Malformed` if it cannot be one."""
    required = {*key, *not_null}
    unknown = required - {column for column, _ in columns}
    if unknown:
        raise Malformed(f"table {name} has no column {min(unknown)}, but a key or NOT NULL on it")
    first = tuple(
        TableColumn(id=number, name=column, type=kind, is_nullable=column not in required)
        for number, (column, kind) in enumerate(columns, 1)
    )
    definition = TableDefinition(
        name=name,
        table_id=UUID(bytes=rand.randbytes(16), version=4),
        key=tuple(key),
        partitions=partitions,
        versions=(first,),
        feed=feed,
    )
    check_definition(definition)
    return definition


def check_definition(definition: TableDefinition) -> None:
    """Raise `Malformed` or `TooLarge` if a table cannot be like this."""
    if not NAME.fullmatch(definition.name):
        raise Malformed(
            f"{definition.name!r} cannot name a table: use letters, digits and '_', 128 at most"
        )
    if not 1 <= definition.partitions <= PARTITIONS_MAX:
        raise Malformed(f"partitions is {definition.partitions}; it must be 1 to {PARTITIONS_MAX}")
    columns = definition.columns
    if len(columns) > COLUMNS_MAX:
        raise TooLarge(f"{len(columns)} columns; the limit is {COLUMNS_MAX}")
    folded: set[str] = set()
    for column in columns:
        if not NAME.fullmatch(column.name) or column.name in RESERVED:
            raise Malformed(f"{column.name!r} cannot name a column")
        if column.name.lower() in folded:
            raise Malformed(f"two columns are called {column.name}; upper and lower case are equal")
        folded.add(column.name.lower())
        arrow_type(column.type)
    _check_key(definition)


def _check_key(definition: TableDefinition) -> None:
    if not 1 <= len(definition.key) <= KEY_COLUMNS_MAX:
        raise Malformed(f"a key has 1 to {KEY_COLUMNS_MAX} columns, not {len(definition.key)}")
    if len(set(definition.key)) < len(definition.key):
        raise Malformed(f"the key {', '.join(definition.key)} has a column twice")
    for column in definition.key_columns:
        if column.type in UNFIT_FOR_KEYS:
            raise Malformed(
                f"column {column.name} cannot be part of a key: it is {column.type}, and "
                f"{UNFIT_FOR_KEYS[column.type]}; use an integer, decimal, date, timestamp, string "
                "or binary"
            )


@lru_cache
def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type of a type's name. Raises `Malformed` if there is no such type."""
    if kind in TYPES:
        return TYPES[kind]
    match = DECIMAL.fullmatch(kind)
    if match and 1 <= int(match[1]) <= DECIMAL_DIGITS_MAX and int(match[2]) <= int(match[1]):
        return pa.decimal128(int(match[1]), int(match[2]))
    raise Malformed(f"there is no type {kind!r}; use {', '.join(TYPES)} or decimal(p,s)")


def is_wider(before: str, after: str) -> bool:
    """Return whether a type has every value of another one."""
    for group in (SIGNED, UNSIGNED, ("float32", "float64")):
        if before in group and after in group:
            return group.index(before) < group.index(after)
    one, other = arrow_type(before), arrow_type(after)
    if types.is_decimal(one) and types.is_decimal(other):
        return bool(one.scale == other.scale and one.precision < other.precision)
    return False
