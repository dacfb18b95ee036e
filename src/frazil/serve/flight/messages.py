"""The messages of Flight SQL, as protobuf classes that are made from this list.

A field is a number, a type and, if it repeats, `*`. All fields tell whether they are set.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from frazil.errors import Malformed, Rejected

PACKAGE = "arrow.flight.protocol.sql"
FILE = "frazil/flight_sql.proto"
TYPE_PREFIX = "type.googleapis.com/"

Message: TypeAlias = Any
"""An object of a class that exists at run time only."""

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


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, text in fields.items():
            number, kind, *repeated = text.split()
            message.field.add(
                name=field,
                number=int(number),
                type=kinds.Type.Value(f"TYPE_{kind.upper()}"),
                label=kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL,
            )
    return file


def _classes() -> dict[str, Any]:
    # A pool of our own: a client of Flight SQL in the same process may have these names as well.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in MESSAGES
    }


_CLASSES = _classes()


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
