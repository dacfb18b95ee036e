"""Records that carry their identity: producer and sequence number.

The rest of the value is derived from the identity, so values are checked without storing them.
"""

from __future__ import annotations

import hashlib
import struct

from frazil.log import Record

ID = struct.Struct(">IQ")


def value_of(producer: int, sequence: int, size_max: int = 700) -> bytes:
    """Return the only valid value of this record."""
    identity = ID.pack(producer, sequence)
    noise = hashlib.shake_128(identity)
    size = int.from_bytes(noise.digest(4), "big") % (size_max + 1)
    return identity + struct.pack(">I", size_max) + noise.digest(size)


def identity_of(value: bytes | None) -> tuple[int, int] | None:
    """Return (producer, sequence) of a value made by `value_of`, None for any other value."""
    if value is None or len(value) < ID.size + 4:
        return None
    producer, sequence = ID.unpack_from(value)
    (size_max,) = struct.unpack_from(">I", value, ID.size)
    if size_max > 1_000_000 or value_of(producer, sequence, size_max) != value:
        return None
    return producer, sequence


def records_of(producer: int, sequence: int, count: int, size_max: int = 700) -> list[Record]:
    return [
        Record(
            offset=i,
            timestamp_ms=1_700_000_000_000 + sequence + i,
            key=None,
            value=value_of(producer, sequence + i, size_max),
        )
        for i in range(count)
    ]


def digest_for(producer: int, sequence: int) -> bytes:
    return hashlib.blake2b(ID.pack(producer, sequence), digest_size=16).digest()
