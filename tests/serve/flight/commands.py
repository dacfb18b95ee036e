"""Commands of Flight SQL by Arrow's own client, with messages encoded here, by hand."""

from __future__ import annotations

from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from pyarrow import flight

PREFIX = "type.googleapis.com/arrow.flight.protocol.sql."
LENGTH_DELIMITED = 2


def field(number: int, value: bytes | str) -> bytes:
    """A text or bytes shorter than 16 KiB."""
    body = value.encode() if isinstance(value, str) else value
    assert len(body) < 1 << 14
    length = [len(body)] if len(body) < 1 << 7 else [len(body) & 0x7F | 0x80, len(body) >> 7]
    return bytes([number << 3 | LENGTH_DELIMITED, *length]) + body


def command(name: str, body: bytes = b"") -> bytes:
    return AnyMessage(type_url=PREFIX + name, value=body).SerializeToString()


def descriptor(name: str, body: bytes = b"") -> Any:
    return flight.FlightDescriptor.for_command(command(name, body))


def fetch(client: Any, name: str, body: bytes = b"") -> Any:
    """The rows of a command."""
    info = client.get_flight_info(descriptor(name, body))
    (endpoint,) = info.endpoints
    assert endpoint.locations == []
    table = client.do_get(endpoint.ticket).read_all()
    assert info.schema is None or table.schema == info.schema
    return table


def act(client: Any, name: str, body: bytes) -> list[bytes]:
    """The results of an action."""
    return [each.body.to_pybytes() for each in client.do_action(flight.Action(name, body))]
