"""postgres: changes of a Postgres database, read from its log (TYPE postgres).

source.py       PostgresSource: first the rows, then the changes; what it may acknowledge
options.py      PostgresOptions: TABLES, SLOT, PUBLICATION, RENAME
snapshot.py     the first copy of tables, as of one moment
changes.py      ChangeReader: from messages to batches of events, one stream per table
envelope.py     change events as Debezium writes them
json_values.py  values of Postgres as JSON
pgoutput.py     messages of the plugin
replication.py  the replication connection
catalog.py      what the catalog of the server says
positions.py    positions in the log, and acknowledgements
topics.py       the topic of a table
"""

from frazil.connect.contract import ConnectorContext, ConnectorType, Source
from frazil.connect.postgres.options import PostgresOptions
from frazil.errors import Rejected


def open_source(options: PostgresOptions, context: ConnectorContext) -> Source:
    """Make a source. Raises `Rejected` if the driver, which is an extra, is not installed."""
    try:
        from frazil.connect.postgres.source import PostgresSource
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

__all__ = ["POSTGRES", "PostgresOptions", "open_source"]
