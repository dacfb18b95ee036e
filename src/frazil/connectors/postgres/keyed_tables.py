"""The keyed table of a table of Postgres: the statement that creates it, fed by the table's topic.

    python -m frazil.connectors.postgres.keyed_tables SOURCE 'host=… dbname=…' \\
        --tables 'public.*' --topic 'shop.{table}' --name '{table}'

prints the statements of all tables that a source of this name has in its publication,
which must exist. It changes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from psycopg.conninfo import conninfo_to_dict

from frazil.connectors.postgres.catalog import Catalog, CatalogColumn, PublishedTable
from frazil.connectors.postgres.options import TABLES, PostgresOptions
from frazil.connectors.postgres.topics import slot_of, topic_of
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


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m frazil.connectors.postgres.keyed_tables")
    parser.add_argument("source", help="name of the source")
    parser.add_argument("connection", help="libpq connection string, without the password")
    parser.add_argument("--tables", default=TABLES, help="TABLES of the source")
    parser.add_argument("--publication", default="", help="PUBLICATION of the source")
    parser.add_argument("--topic", required=True, help="INTO TOPIC of the source")
    parser.add_argument("--name", default="{table}", help="names of the keyed tables")
    arguments = parser.parse_args()
    options = PostgresOptions(tables=arguments.tables, publication=arguments.publication)
    connection = {k: str(v) for k, v in conninfo_to_dict(arguments.connection).items()}
    catalog = Catalog(connection, "frazil keyed_tables")
    try:
        publication = options.publication or slot_of(arguments.source)
        for table in catalog.published(publication, options):
            place = (table.relation.schema, table.relation.table)
            name = topic_of(arguments.name, *place)
            sys.stdout.write(create_statement(table, name, topic_of(arguments.topic, *place)))
            sys.stdout.write(";\n")
    finally:
        catalog.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
