"""POSTGRES: what TYPE postgres is in CREATE SOURCE."""

from __future__ import annotations

from frazil.connectors.contract import ConnectorContext, ConnectorType, Source
from frazil.connectors.postgres.options import PostgresOptions
from frazil.errors import Rejected


def open_source(options: PostgresOptions, context: ConnectorContext) -> Source:
    """Make a source. Raises `Rejected` if the driver, which is an extra, is not installed."""
    try:
        from frazil.connectors.postgres.source import PostgresSource
    except ImportError as error:
        raise Rejected(
            f"TYPE postgres needs psycopg ({error}): pip install 'frazil[postgres]'"
        ) from error
    return PostgresSource(options, context)


POSTGRES = ConnectorType(
    title="changes of tables in a PostgreSQL database, from its log",
    options=PostgresOptions,
    source=open_source,
    connection="required",
)
