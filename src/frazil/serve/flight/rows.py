"""The rows of queries and statements as streams. Batches are passed on as they arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyarrow import flight

from frazil.definitions import StatementExecutor
from frazil.errors import Malformed, TooLarge
from frazil.query import QueryColumns
from frazil.results import CancelToken, Result
from frazil.serve.context import Sql
from frazil.serve.flight.catalog import CatalogSource
from frazil.serve.flight.failures import flight_errors
from frazil.serve.flight.running import RunningStreams
from frazil.serve.flight.tickets import QueryTicket
from frazil.serve.http.handler import run_query
from frazil.tables import KeyedTables


class QueryEngine(CatalogSource, Protocol):
    """What plans queries, and knows the tables."""

    def describe(self, text: str) -> QueryColumns: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightSource:
    """What the port serves. Any thread may use it."""

    sql: Sql
    engine: QueryEngine
    statements: StatementExecutor
    tables: KeyedTables


def query_stream(
    source: FlightSource,
    ticket: QueryTicket,
    running: RunningStreams,
    context: flight.ServerCallContext,
) -> flight.FlightDataStream:
    """Start the first query of a ticket, and return its rows, then those of the others."""
    token = CancelToken()
    with running.watched(ticket.number, context, token):
        first = run_query(source.sql, token, ticket.texts[0])

    def batches() -> Iterator[pa.RecordBatch]:
        with flight_errors(), running.watched(ticket.number, context, token):
            yield from _rows(first)
            for text in ticket.texts[1:]:
                yield from _rows(_alike(run_query(source.sql, token, text), first.schema))

    return flight.GeneratorStream(first.schema, batches())


def _rows(result: Result) -> Iterator[pa.RecordBatch]:
    """Yield all rows. `TooLarge` after them if there are more: a part never passes for all."""
    with result:
        yield from result
    if result.is_cut:
        raise TooLarge(
            f"the result has more than {result.returned_count} rows, the limit query.rows_max; "
            "add a LIMIT, or aggregate"
        )


def _alike(result: Result, schema: pa.Schema) -> Result:
    if result.schema.types != schema.types:
        result.close()
        raise Malformed(
            "the columns of the query have other types for other rows of parameters; bind one row "
            "at a time"
        )
    return result


def execute(
    source: FlightSource,
    texts: Sequence[str],
    who: str,
    number: bytes,
    running: RunningStreams,
    context: flight.ServerCallContext,
) -> list[pa.Table]:
    """Carry out statements, and return the rows of each."""
    token = CancelToken()
    with running.watched(number, context, token):
        return [source.statements.execute(text, who=who, cancel_token=token) for text in texts]


def changed_count(tables: Sequence[pa.Table]) -> int:
    """Return how many rows statements have changed; 0 if they do not say. At -1, as Flight SQL
    has it for an unknown number, JDBC asks for rows, and would carry the statement out again."""
    counts = [table["rows"].to_pylist() for table in tables if "rows" in table.column_names]
    return sum(sum(count) for count in counts)
