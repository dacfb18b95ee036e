"""FlightSqlServer: the methods of Flight, and which command of Flight SQL goes where.

GetFlightInfo   plans a query: its columns, and a ticket with its text
DoGet           runs it, or lists tables, types, keys
DoPut           binds values, or carries out a statement
DoAction        prepares, closes, cancels
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import flight

from frazil.definitions import is_statement
from frazil.errors import Malformed, Rejected, Unknown
from frazil.model import Clock, Rand
from frazil.serve.flight import catalog, data_types, server_info
from frazil.serve.flight.access import ACCESS, CallAccess
from frazil.serve.flight.failures import with_flight_errors
from frazil.serve.flight.messages import (
    CANCELLED,
    CLOSED,
    NOT_CANCELLABLE,
    message_of,
    parse,
    unwrap,
    wrapped,
)
from frazil.serve.flight.parameters import (
    bound_texts,
    check_rows,
    parameter_schema,
    with_numbers,
)
from frazil.serve.flight.prepared import PreparedStatement, PreparedStatements
from frazil.serve.flight.rows import FlightSource, changed_count, execute, query_stream
from frazil.serve.flight.running import RunningStreams
from frazil.serve.flight.statement_types import statement_parameters
from frazil.serve.flight.tickets import QueryTicket, check_length, parse_ticket, ticket_bytes
from frazil.serve.proto_messages import Message
from frazil.settings import QueryConfig

NO_COLUMNS = pa.schema([])
UNKNOWN_COUNT = -1
ACTIONS = {
    "CreatePreparedStatement": "Prepare a query or statement.",
    "ClosePreparedStatement": "Close it.",
    "CancelFlightInfo": "Cancel a query.",
    "CancelQuery": "Cancel a query, as older clients do.",
    "CloseSession": "End a session; there is nothing to it.",
}
METADATA: dict[str, pa.Schema] = {
    "CommandGetCatalogs": catalog.CATALOGS,
    "CommandGetDbSchemas": catalog.SCHEMAS,
    "CommandGetTableTypes": catalog.TABLE_TYPES,
    "CommandGetPrimaryKeys": catalog.PRIMARY_KEYS,
    "CommandGetExportedKeys": catalog.FOREIGN_KEYS,
    "CommandGetImportedKeys": catalog.FOREIGN_KEYS,
    "CommandGetCrossReference": catalog.FOREIGN_KEYS,
    "CommandGetSqlInfo": server_info.SERVER_INFO,
    "CommandGetXdbcTypeInfo": data_types.TYPE_INFO,
}
"""Commands whose rows have these columns."""


class FlightSqlServer(flight.FlightServerBase):  # type: ignore[misc]
    """Called by Flight in threads of its own. Listens from the start."""

    def __init__(
        self,
        location: str,
        source: FlightSource,
        query: QueryConfig,
        *,
        clock: Clock,
        rand: Rand,
        **options: Any,
    ) -> None:
        self._source = source
        self._query = query
        self._prepared = PreparedStatements(clock, rand)
        self.running = RunningStreams(self._prepared.expire)
        super().__init__(location, **options)

    @with_flight_errors
    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        columns, ticket = self._planned(context, descriptor)
        endpoint = flight.FlightEndpoint(ticket, [])
        return flight.FlightInfo(columns, descriptor, [endpoint], UNKNOWN_COUNT, UNKNOWN_COUNT)

    @with_flight_errors
    def get_schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        columns, _ = self._planned(context, descriptor)
        return flight.SchemaResult(columns or NO_COLUMNS)

    def _planned(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> tuple[pa.Schema | None, bytes]:
        """Return the columns of a command, None if they are not known before, and its ticket."""
        name, command = unwrap(descriptor.command or b"")
        if name == "CommandStatementQuery":
            return self._planned_text(context, self._statement_of(command.query))
        if name == "CommandPreparedStatementQuery":
            prepared = self._prepared.find(command.prepared_statement_handle)
            return self._planned_text(context, prepared)
        if name == "CommandGetTables":
            return catalog.table_schema(command), descriptor.command
        if name in METADATA:
            return METADATA[name], descriptor.command
        raise Malformed(f"{name} is not a command with rows")

    def _planned_text(
        self, context: flight.ServerCallContext, statement: PreparedStatement
    ) -> tuple[pa.Schema | None, bytes]:
        texts = bound_texts(statement.text, statement.parameters, statement.rows)
        if not statement.is_query:
            _access(context).check_statements()
            number = self._prepared.add(statement)
            return None, ticket_bytes(QueryTicket(number, texts))
        columns = statement.columns
        if statement.rows:
            columns = self._source.engine.describe(texts[0]).columns
        return columns, ticket_bytes(QueryTicket(self._prepared.new_number(), texts))

    def _statement_of(self, text: str) -> PreparedStatement:
        """Plan a text."""
        check_length(text)
        text = with_numbers(text)
        if is_statement(text):
            source = self._source
            return PreparedStatement(
                text=text,
                is_query=False,
                columns=NO_COLUMNS,
                parameters=statement_parameters(text, source.tables, source.engine.describe),
            )
        planned = self._source.engine.describe(text)
        return PreparedStatement(
            text=text,
            is_query=True,
            columns=planned.columns,
            parameters=parameter_schema(text, planned.parameters),
        )

    @with_flight_errors
    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        name, command = unwrap(ticket.ticket)
        if name != "TicketStatementQuery":
            return flight.RecordBatchStream(self._metadata(name, command))
        query = parse_ticket(command.statement_handle)
        if not query.texts:
            raise Malformed("the ticket has no query")
        if not is_statement(query.texts[0]):
            return query_stream(self._source, query, self.running, context)
        if self._prepared.take(query.number) is None:
            raise Unknown("the statement was carried out, or its ticket expired; send it again")
        return flight.RecordBatchStream(self._execute(context, query)[-1])

    def _execute(self, context: flight.ServerCallContext, query: QueryTicket) -> list[pa.Table]:
        access = _access(context)
        access.check_statements()
        return execute(self._source, query.texts, access.who, query.number, self.running, context)

    def _metadata(self, name: str, command: Message) -> pa.Table:
        """Return the rows of a command about the server."""
        source, query = self._source, self._query
        answers: dict[str, Callable[[], pa.Table]] = {
            "CommandGetCatalogs": catalog.catalogs,
            "CommandGetDbSchemas": lambda: catalog.schemas(command),
            "CommandGetTables": lambda: catalog.tables(source.engine, command),
            "CommandGetTableTypes": catalog.table_types,
            "CommandGetPrimaryKeys": lambda: catalog.primary_keys(source.tables, command),
            "CommandGetExportedKeys": catalog.foreign_keys,
            "CommandGetImportedKeys": catalog.foreign_keys,
            "CommandGetCrossReference": catalog.foreign_keys,
            "CommandGetSqlInfo": lambda: server_info.server_info(
                command, timeout_ms=query.timeout_ms, text_bytes_max=query.text_bytes_max
            ),
            "CommandGetXdbcTypeInfo": lambda: data_types.type_info(command),
        }
        if name not in answers:
            raise Malformed(f"{name} is no ticket of this node")
        return answers[name]()

    @with_flight_errors
    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        name, command = unwrap(descriptor.command or b"")
        if name == "CommandPreparedStatementQuery":
            handle = command.prepared_statement_handle
            statement = self._prepared.find(handle)
            statement.rows = _values(reader)
            answer = message_of("DoPutPreparedStatementResult", prepared_statement_handle=handle)
        elif name == "CommandStatementUpdate":
            _refuse_transaction(command)
            answer = self._updated(context, self._statement_of(command.query), ())
        elif name == "CommandPreparedStatementUpdate":
            statement = self._prepared.find(command.prepared_statement_handle)
            rows = _values(reader) if statement.parameters.names else ()
            answer = self._updated(context, statement, rows or statement.rows)
        else:
            raise Rejected(f"{name} is not supported")
        writer.write(pa.py_buffer(answer.SerializeToString()))

    def _updated(
        self,
        context: flight.ServerCallContext,
        statement: PreparedStatement,
        rows: Sequence[pa.RecordBatch],
    ) -> Message:
        texts = bound_texts(statement.text, statement.parameters, rows)
        query = QueryTicket(self._prepared.new_number(), texts)
        return message_of(
            "DoPutUpdateResult", record_count=changed_count(self._execute(context, query))
        )

    def list_actions(self, context: flight.ServerCallContext) -> list[flight.ActionType]:
        return [flight.ActionType(name, what) for name, what in ACTIONS.items()]

    @with_flight_errors
    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> Iterator[bytes]:
        body = action.body.to_pybytes()
        if action.type == "CreatePreparedStatement":
            return iter([self._prepare(unwrap(body)[1])])
        if action.type == "ClosePreparedStatement":
            self._prepared.take(unwrap(body)[1].prepared_statement_handle)
            return iter(())
        if action.type == "CancelFlightInfo":
            status = self._cancel(parse("CancelFlightInfoRequest", body).info)
            return iter([message_of("CancelFlightInfoResult", status=status).SerializeToString()])
        if action.type == "CancelQuery":
            status = self._cancel(unwrap(body)[1].info)
            return iter([wrapped(message_of("ActionCancelQueryResult", result=status))])
        if action.type == "CloseSession":
            return iter([message_of("CloseSessionResult", status=CLOSED).SerializeToString()])
        raise Rejected(f"the action {action.type} is not supported")

    def _prepare(self, request: Message) -> bytes:
        _refuse_transaction(request)
        statement = self._statement_of(request.query)
        return wrapped(
            message_of(
                "ActionCreatePreparedStatementResult",
                prepared_statement_handle=self._prepared.add(statement),
                dataset_schema=_ipc(statement.columns) if statement.is_query else b"",
                parameter_schema=_ipc(statement.parameters),
            )
        )

    def _cancel(self, info: bytes) -> int:
        """Cancel the streams of a query that runs."""
        try:
            endpoints = flight.FlightInfo.deserialize(info).endpoints
        except pa.ArrowException as error:
            raise Malformed(f"the bytes are no FlightInfo: {error}") from None
        is_cancelled = False
        for endpoint in endpoints:
            name, command = unwrap(endpoint.ticket.ticket)
            if name == "TicketStatementQuery":
                number = parse_ticket(command.statement_handle).number
                is_cancelled |= self.running.cancel(number)
        return CANCELLED if is_cancelled else NOT_CANCELLABLE


def _access(context: flight.ServerCallContext) -> CallAccess:
    access = context.get_middleware(ACCESS)
    assert isinstance(access, CallAccess)
    return access


def _values(reader: flight.MetadataRecordBatchReader) -> tuple[pa.RecordBatch, ...]:
    """Read the rows of values that a client binds."""
    rows: list[pa.RecordBatch] = []
    for chunk in reader:
        if chunk.data is not None:
            rows.append(chunk.data)
            check_rows(rows)
    return tuple(rows)


def _refuse_transaction(command: Message) -> None:
    if command.transaction_id:
        raise Rejected("there are no transactions; each statement is complete by itself")


def _ipc(schema: pa.Schema) -> bytes:
    body: bytes = schema.serialize().to_pybytes()
    return body
