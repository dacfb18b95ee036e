"""One trace, as protobuf and as JSON.

Version 1 answers with the message Trace, version 2 with TraceByIDResponse, which has it as field 1.
Trace has ResourceSpans as field 1, as a request of OTLP has: so the encoder's requests, one after
the other, are a Trace.
"""

from __future__ import annotations

import binascii
from http import HTTPStatus

import msgspec
import pyarrow as pa

from frazil.httpd import HttpError, Response
from frazil.model.arrow import encode
from frazil.query import (
    TRACE_SPANS_MAX,
    Ask,
    resource_spans,
    spans_of_trace,
    typed_spans,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.trace_params import trace_id_of
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import JSON, answer_of_body

PROTOBUF = b"application/protobuf"
CUT = f"the trace has more than {TRACE_SPANS_MAX} spans; this answer has the first ones"
PARTIAL = 1
"""PartialStatus_PARTIAL."""


async def trace_v1(handler: Handler, call: DoorRequest) -> Response:
    """Return a trace as Trace."""
    return await _respond(handler, call, is_v2=False)


async def trace_v2(handler: Handler, call: DoorRequest) -> Response:
    """Return a trace as TraceByIDResponse."""
    return await _respond(handler, call, is_v2=True)


async def _respond(handler: Handler, call: DoorRequest, *, is_v2: bool) -> Response:
    trace_id = trace_id_of(call.path_values["id"])
    wants_protobuf = "application/protobuf" in call.request.headers.get("accept", "")

    def load(ask: Ask) -> Response:
        rows = spans_of_trace(ask, trace_id, "*")
        if not rows.num_rows:
            raise HttpError(HTTPStatus.NOT_FOUND, f"trace {trace_id} was not found")
        is_cut = rows.num_rows > TRACE_SPANS_MAX
        rows = rows.slice(0, TRACE_SPANS_MAX)
        if wants_protobuf:
            return answer_of_body(_protobuf(rows, is_cut=is_cut, is_v2=is_v2), PROTOBUF)
        return answer_of_body(_json(rows, is_cut=is_cut, is_v2=is_v2), JSON)

    return await handler.load(call.request, load)


def trace_message(rows: pa.Table) -> bytes:
    """Return spans as the message Trace. Those of one resource and scope share one message.
    Grafana's data source ends with a panic if a span has no status, scope or resource."""
    order = ("service_name", "service_instance_id", "scope_name", "time_unix_nano")
    ordered = rows.sort_by([(name, "ascending") for name in order])
    return b"".join(encode("traces", ordered, has_empty=True))


def _protobuf(rows: pa.Table, *, is_cut: bool, is_v2: bool) -> bytes:
    trace = trace_message(rows)
    if not is_v2:
        return trace
    body = _field(1, trace)
    return body + b"\x18%c" % PARTIAL + _field(4, CUT.encode()) if is_cut else body


def _field(number: int, content: bytes) -> bytes:
    """Return a field of bytes."""
    length = bytearray()
    rest = len(content)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([number << 3 | 2, *length, rest]) + content


def _json(rows: pa.Table, *, is_cut: bool, is_v2: bool) -> bytes:
    resources = resource_spans(typed_spans(rows), _base64_of_hex)
    if not is_v2:
        return msgspec.json.encode({"batches": resources})
    answer: dict[str, object] = {"trace": {"resourceSpans": resources}}
    if is_cut:
        answer |= {"status": "PARTIAL", "message": CUT}
    return msgspec.json.encode(answer)


def _base64_of_hex(text: str) -> str:
    """Return an id as protobuf's JSON writes bytes."""
    return binascii.b2a_base64(bytes.fromhex(text), newline=False).decode()
