"""The keyed table of a table of Postgres: the statement that creates it, fed by the table's topic,
and those that add columns and widen types as the table does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.connect.postgres.catalog import CatalogColumn, PublishedTable
from frazil.errors import Rejected

TYPES: Mapping[str, str] = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "oid": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "bytea": "BINARY",
}
"""Types that are not here, and are no arrays, become TEXT."""
PRECISION_MAX = 38
MODIFIER_BYTES = 4
ARRAY = "_"
"""Begins the names of array types."""


def column_type(column: CatalogColumn) -> str | None:
    """Return the type of a column in a keyed table; None if there is none: keyed tables have no
    lists."""
    if column.type_name.startswith(ARRAY):
        return None
    if column.type_name == "numeric":
        return _decimal(column.type_modifier)
    return TYPES.get(column.type_name, "TEXT")


def _decimal(modifier: int) -> str:
    """Return the type of a numeric. Without limits, or with wider ones, its text has all digits."""
    if modifier < MODIFIER_BYTES:
        return "TEXT"
    limits = modifier - MODIFIER_BYTES
    precision, scale = limits >> 16 & 0xFFFF, limits & 0x7FF
    if precision > PRECISION_MAX or scale > precision:
        return "TEXT"
    return f"DECIMAL({precision}, {scale})"


def create_statement(table: PublishedTable, name: str, topic: str) -> str:
    """Return the statement that creates the keyed table. Raises `Rejected` if the table has no
    key. Only columns of the key are NOT NULL: a deleted column must not stop the others."""
    key = [column.name for column in table.relation.columns if column.is_key]
    key = list(table.primary_key) or key
    if not key:
        raise Rejected(
            f"{table.name} has no primary key, so its rows cannot be told apart: give it one, or "
            "send its changes to a topic"
        )
    columns = [
        f"{_identifier(column.name)} {kind}{' NOT NULL' if column.name in key else ''}"
        for column in table.columns
        if (kind := column_type(column)) is not None
    ]
    names = ", ".join(map(_identifier, key))
    return (
        f"CREATE TABLE IF NOT EXISTS {_identifier(name)} ({', '.join(columns)}, "
        f"PRIMARY KEY ({names})) FROM TOPIC {_text(topic)} FORMAT DEBEZIUM"
    )


def alter_statements(table: PublishedTable, name: str, known: Mapping[str, str]) -> Sequence[str]:
    """Return the statements that add the columns which `known`, column to type, lacks. Columns that
    are gone stay, and are null in rows from then on."""
    return [
        f"ALTER TABLE {_identifier(name)} ADD COLUMN {_identifier(column.name)} {kind}"
        for column in table.columns
        if column.name not in known and (kind := column_type(column)) is not None
    ]


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
