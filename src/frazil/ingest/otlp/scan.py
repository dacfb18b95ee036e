"""The scanner: validates a request, counts its records, and finds those that cannot be stored.

It accepts what protobuf's own parser accepts, with one exception: groups, which no OTLP message
has, are refused, because they make readers of the log recurse.

A record is rejected when, as protobuf presents it,
- a trace_id is neither empty nor 16 bytes long, or a span_id or parent_span_id neither empty nor
  8, also in its links and exemplars;
- an unsigned time or count, also in its events, exemplars and buckets, is above 2^63-1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frazil.errors import Malformed
from frazil.ingest.otlp.messages import REQUESTS
from frazil.ingest.otlp.scan_tables import ScanTable, scan_table_of
from frazil.ingest.otlp.scan_walk import (
    ID,
    KIND_MASK,
    PAYLOAD_SHIFT,
    Positions,
    cut,
    walk,
)
from frazil.model import Signal
from frazil.model.protobuf import FAULTS, WELL

TABLES = {signal: scan_table_of(REQUESTS[signal]) for signal in Signal}
NO_STARTS = np.empty(0, np.int64)
NEVER_LARGE = 1 << 60


class ScanResult(NamedTuple):
    """The contents of a request."""

    record_count: int
    """Records that can be stored."""
    rejected_count: int
    """Records that cannot be stored."""
    reason: str
    """Why the first of these cannot be stored; empty if there is none."""
    has_large: bool = False
    """Whether a message is longer than `large` and carries no records."""


def scan(signal: Signal, body: bytes, large: int = NEVER_LARGE) -> ScanResult:
    """Validate every byte of a request. Raises `Malformed` if it is not one."""
    table = TABLES[signal]
    fault, position, entry_index, stored, rejected, _, large_count = walk(
        np.frombuffer(body, np.uint8), table.entries, table.tag_bits, large, NO_STARTS
    )
    if fault != WELL:
        raise _malformed(table, fault, position, entry_index)
    reason = _reason(table, position, entry_index) if rejected else ""
    return ScanResult(stored, rejected, reason, large_count > 0)


def prune(signal: Signal, body: bytes) -> bytes:
    """Return the request without the records that cannot be stored. Raises `Malformed`."""
    table = TABLES[signal]
    source = np.frombuffer(body, np.uint8)
    fault, position, entry_index, _, _, cut_count, _ = walk(
        source, table.entries, table.tag_bits, NEVER_LARGE, NO_STARTS
    )
    if fault != WELL:
        raise _malformed(table, fault, position, entry_index)
    starts = np.empty(cut_count, np.int64)
    walk(source, table.entries, table.tag_bits, NEVER_LARGE, starts)
    return without_records(signal, body, starts)


def without_records(signal: Signal, body: bytes, starts: Positions) -> bytes:
    """Return a valid request without the records that begin at `starts`."""
    table = TABLES[signal]
    output = np.empty(len(body), np.uint8)
    source = np.frombuffer(body, np.uint8)
    written = cut(source, table.entries, table.tag_bits, starts, output)
    return output[:written].tobytes()


def _malformed(table: ScanTable, fault: int, position: int, entry_index: int) -> Malformed:
    return Malformed(
        f"not an OTLP request: {FAULTS[fault]}, at byte {position} in {_name(table, entry_index)}"
    )


def _reason(table: ScanTable, position: int, entry_index: int) -> str:
    entry = int(table.entries[entry_index])
    if entry & KIND_MASK == ID:
        rule = f"must be {entry >> PAYLOAD_SHIFT} bytes long or empty"
    else:
        rule = "must not be above 2^63-1"
    return f"{_name(table, entry_index)} {rule}; it is at byte {position} of the request"


def _name(table: ScanTable, entry_index: int) -> str:
    """Return `LogRecord.trace_id`, or only the message if the field is unknown."""
    message = table.messages[entry_index >> table.tag_bits]
    field = table.fields.get(entry_index)
    return message if field is None else f"{message}.{field}"
