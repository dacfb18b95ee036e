"""The scanner: is this body an OTLP request, how many records does it have, and which of them can
never be stored? It says about any bytes what protobuf's own parser says, with one exception:
groups, which no OTLP message has, are refused, as they make readers of the log recurse.

A record can never be stored when, as protobuf presents it,
- a trace_id is neither empty nor 16 bytes long, or a span_id or parent_span_id neither empty nor
  8, also in its links and exemplars;
- an unsigned time or count in it, also in its events, exemplars and buckets, is above 2^63-1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frazil.errors import Malformed
from frazil.ingest.otlp.messages import REQUESTS
from frazil.ingest.otlp.scan_tables import ScanTable, steering_of
from frazil.ingest.otlp.scan_walk import (
    DEPTH_MAX,
    FIELD_ZERO,
    GROUP,
    ID,
    KIND_MASK,
    LENGTH_BEYOND,
    LENGTH_LONG,
    NOT_TEXT,
    PACKED_ODD,
    PAYLOAD_SHIFT,
    TAG_LONG,
    TOO_DEEP,
    TRUNCATED,
    VARINT_LONG,
    WELL,
    WIRE_TYPE,
    cut,
    walk,
)
from frazil.model import Signal

FAULTS = {
    TRUNCATED: "the message ends inside a field",
    TAG_LONG: "a tag is longer than 32 bits",
    VARINT_LONG: "a number is longer than 10 bytes",
    LENGTH_LONG: "a length is above 2^31-1 or longer than 5 bytes",
    LENGTH_BEYOND: "a length reaches beyond the end of the message",
    PACKED_ODD: "the length of packed numbers is no multiple of their size",
    NOT_TEXT: "a text is not UTF-8",
    TOO_DEEP: f"messages are nested more than {DEPTH_MAX} deep",
    FIELD_ZERO: "a field has the number 0",
    GROUP: "groups are not accepted",
    WIRE_TYPE: "there is no such wire type",
}
STEERING = {signal: steering_of(REQUESTS[signal]) for signal in Signal}
NO_STARTS = np.empty(0, np.int64)


class ScanResult(NamedTuple):
    """What a request holds."""

    record_count: int
    """Records that can be stored."""
    rejected_count: int
    """Records that can never be stored."""
    reason: str
    """Why the first of these cannot; empty when there is none."""


def scan(signal: Signal, body: bytes) -> ScanResult:
    """Look at every byte of a request. `Malformed` when it is none."""
    steering = STEERING[signal]
    fault, position, place, stored, rejected, _ = walk(
        np.frombuffer(body, np.uint8), steering.table, steering.tag_bits, NO_STARTS
    )
    if fault != WELL:
        raise _malformed(steering, fault, position, place)
    return ScanResult(stored, rejected, _reason(steering, position, place) if rejected else "")


def prune(signal: Signal, body: bytes) -> bytes:
    """The same request without the records that can never be stored. `Malformed` when it is
    none."""
    steering = STEERING[signal]
    bytes_in = np.frombuffer(body, np.uint8)
    fault, position, place, _, _, struck = walk(
        bytes_in, steering.table, steering.tag_bits, NO_STARTS
    )
    if fault != WELL:
        raise _malformed(steering, fault, position, place)
    starts = np.empty(struck, np.int64)
    walk(bytes_in, steering.table, steering.tag_bits, starts)
    bytes_out = np.empty(len(body), np.uint8)
    written = cut(bytes_in, steering.table, steering.tag_bits, starts, bytes_out)
    return bytes_out[:written].tobytes()


def warm() -> None:
    """Compile what is compiled, or load it from disk, so that no request waits for that."""
    prune(Signal.LOGS, b"")


def _malformed(steering: ScanTable, fault: int, position: int, place: int) -> Malformed:
    return Malformed(
        f"not an OTLP request: {FAULTS[fault]}, at byte {position} in {_name(steering, place)}"
    )


def _reason(steering: ScanTable, position: int, place: int) -> str:
    entry = int(steering.table[place])
    if entry & KIND_MASK == ID:
        rule = f"must be {entry >> PAYLOAD_SHIFT} bytes long or empty"
    else:
        rule = "must not be above 2^63-1"
    return f"{_name(steering, place)} {rule}; it is at byte {position} of the request"


def _name(steering: ScanTable, place: int) -> str:
    """`LogRecord.trace_id`, or the message alone when the field is not known."""
    message = steering.messages[place >> steering.tag_bits]
    field = steering.fields.get(place)
    return message if field is None else f"{message}.{field}"
