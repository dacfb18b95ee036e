"""Markers: the control records that end a transaction in one partition. Kafka's own format."""

from __future__ import annotations

import enum
import struct

from frazil.errors import Malformed
from frazil.log.append import Append
from frazil.log.format.batch import encode_parts, read_records
from frazil.log.format.record import Record

KEY = struct.Struct(">hh")
"""Version, type."""
VALUE = struct.Struct(">hi")
"""Version, epoch of the coordinator."""
VERSION = 0


class Marker(enum.IntEnum):
    """How a transaction ended; the numbers are those of the protocol."""

    ABORT = 0
    COMMIT = 1


def append_of_marker(
    marker: Marker,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> Append:
    """Encode the marker of a producer's transaction."""
    record = Record(
        offset=0,
        timestamp_ms=timestamp_ms,
        key=KEY.pack(VERSION, marker),
        value=VALUE.pack(VERSION, coordinator_epoch),
    )
    header, parts = encode_parts(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
    return Append(parts=tuple(parts), header=header)


def marker_of(payload: bytes) -> Marker | None:
    """Return the marker in a control batch; None if it is another kind of control record."""
    (record,) = read_records(payload)
    if record.key is None or len(record.key) < KEY.size:
        raise Malformed("a control record without a type")
    _, kind = KEY.unpack_from(record.key)
    return Marker(kind) if kind in (Marker.ABORT, Marker.COMMIT) else None
