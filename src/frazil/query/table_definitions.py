"""Definitions of keyed tables, from and to statements."""

from __future__ import annotations

from frazil.definitions import CreateTable, TableColumnSpec
from frazil.model import Rand
from frazil.query.sql.as_of import quoted
from frazil.tables import TableDefinition, TableFeed, new_definition

TYPES = {
    "BOOLEAN": "bool",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INT": "int32",
    "BIGINT": "int64",
    "TINYINT UNSIGNED": "uint8",
    "SMALLINT UNSIGNED": "uint16",
    "INT UNSIGNED": "uint32",
    "BIGINT UNSIGNED": "uint64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "VARCHAR": "string",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
    "BINARY": "binary",
}
"""The type as a statement writes it, and as a definition has it. DECIMAL(p, s) is the same."""


def definition_of(statement: CreateTable, rand: Rand) -> TableDefinition:
    """Return the definition of a new table. One that a topic feeds gets its partitions."""
    feed = None
    if statement.topic_format is not None:
        feed = TableFeed(topic=statement.topic, format=statement.topic_format)
    return new_definition(
        statement.name,
        [(column.name, type_of(column)) for column in statement.columns],
        statement.key,
        rand=rand,
        partitions=statement.partitions,
        not_null=[column.name for column in statement.columns if column.not_null],
        feed=feed,
    )


def type_of(column: TableColumnSpec) -> str:
    """Return the type of a column as a definition has it."""
    if column.type.startswith("DECIMAL"):
        return column.type.lower().replace(" ", "")
    return TYPES[column.type]


def definition_text(definition: TableDefinition) -> str:
    """Return the statement that creates a table like this one."""
    names = {kind: word for word, kind in TYPES.items()}
    columns = [
        f"{quoted_if_needed(column.name)} "
        + (names.get(column.type) or column.type.upper().replace(",", ", "))
        + ("" if column.is_nullable or column.name in definition.key else " NOT NULL")
        for column in definition.columns
    ]
    key = ", ".join(map(quoted_if_needed, definition.key))
    partitions = f" PARTITIONS {definition.partitions}" if definition.partitions > 1 else ""
    if definition.feed is not None:
        topic = definition.feed.topic.replace("'", "''")
        partitions = f" FROM TOPIC '{topic}' FORMAT {definition.feed.format.upper()}"
    name = quoted_if_needed(definition.name)
    return f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({key})){partitions}"


def quoted_if_needed(name: str) -> str:
    """Return a name as a statement writes it."""
    return name if name == name.lower() else quoted(name)
