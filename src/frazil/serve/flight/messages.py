"""The messages of Flight SQL, as protobuf classes that are made from this list."""

from __future__ import annotations

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from frazil.errors import Malformed, Rejected
from frazil.serve.proto_messages import Message, message_classes

PACKAGE = "arrow.flight.protocol.sql"
FILE = "frazil/flight_sql.proto"
TYPE_PREFIX = "type.googleapis.com/"

_TABLE_OF_KEYS = {"catalog": "1 string", "db_schema": "2 string", "table": "3 string"}
_QUERY = {"query": "1 string", "transaction_id": "2 bytes"}
_HANDLE = {"prepared_statement_handle": "1 bytes"}

MESSAGES: dict[str, dict[str, str]] = {
    "CommandGetSqlInfo": {"info": "1 uint32 *"},
    "CommandGetXdbcTypeInfo": {"data_type": "1 int32"},
    "CommandGetCatalogs": {},
    "CommandGetDbSchemas": {"catalog": "1 string", "db_schema_filter_pattern": "2 string"},
    "CommandGetTables": {
        "catalog": "1 string",
        "db_schema_filter_pattern": "2 string",
        "table_name_filter_pattern": "3 string",
        "table_types": "4 string *",
        "include_schema": "5 bool",
    },
    "CommandGetTableTypes": {},
    "CommandGetPrimaryKeys": _TABLE_OF_KEYS,
    "CommandGetExportedKeys": _TABLE_OF_KEYS,
    "CommandGetImportedKeys": _TABLE_OF_KEYS,
    "CommandGetCrossReference": {},
    "CommandStatementQuery": _QUERY,
    "CommandStatementUpdate": _QUERY,
    "CommandPreparedStatementQuery": _HANDLE,
    "CommandPreparedStatementUpdate": _HANDLE,
    "TicketStatementQuery": {"statement_handle": "1 bytes"},
    "DoPutUpdateResult": {"record_count": "1 int64"},
    "DoPutPreparedStatementResult": _HANDLE,
    "ActionCreatePreparedStatementRequest": _QUERY,
    "ActionCreatePreparedStatementResult": {
        **_HANDLE,
        "dataset_schema": "2 bytes",
        "parameter_schema": "3 bytes",
    },
    "ActionClosePreparedStatementRequest": _HANDLE,
    "ActionCancelQueryRequest": {"info": "1 bytes"},
    "ActionCancelQueryResult": {"result": "1 int32"},
    "CancelFlightInfoRequest": {"info": "1 bytes"},
    "CancelFlightInfoResult": {"status": "1 int32"},
    "CloseSessionResult": {"status": "1 int32"},
}

CANCELLED, NOT_CANCELLABLE = 1, 3
"""Results of a cancellation."""
CLOSED = 1
"""Result of closing a session."""


_CLASSES = message_classes(FILE, PACKAGE, MESSAGES)


def message_of(name: str, **fields: object) -> Message:
    """Return a new message."""
    return _CLASSES[name](**fields)


def parse(name: str, body: bytes) -> Message:
    """Return a message of these bytes."""
    try:
        return _CLASSES[name].FromString(body)
    except DecodeError as error:
        raise Malformed(f"the bytes are no {name}: {error}") from None


def wrapped(message: Message) -> bytes:
    """Return the bytes of a message with its name around it."""
    url = TYPE_PREFIX + message.DESCRIPTOR.full_name
    return any_pb2.Any(type_url=url, value=message.SerializeToString()).SerializeToString()


def unwrap(body: bytes) -> tuple[str, Message]:
    """Return the name of a message, without its package, and the message."""
    try:
        outer = any_pb2.Any.FromString(body)
    except DecodeError:
        outer = any_pb2.Any()
    package, _, name = outer.type_url.removeprefix(TYPE_PREFIX).rpartition(".")
    if package != PACKAGE:
        raise Malformed("this is no command of Flight SQL; use a client of Flight SQL")
    if name not in MESSAGES:
        raise Rejected(f"{name} is not supported")
    return name, parse(name, outer.value)
