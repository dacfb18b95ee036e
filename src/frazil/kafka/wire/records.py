"""Messages inside records: keys and values of internal topics, metadata of consumers.

A key begins with its type, which is the `api_key` of its class, and has version 0. A value begins
with its version. So do the messages that members of a classic group send each other.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from frazil.errors import Malformed
from frazil.kafka.wire.codec import decode, encode
from frazil.kafka.wire.schema import Bytes, KafkaMessage

PREFIX = struct.Struct(">h")

M = TypeVar("M", bound=KafkaMessage)


def encode_key(key: KafkaMessage) -> bytes:
    """Return the key of a record of an internal topic."""
    return b"".join([PREFIX.pack(key.VERSIONS.api_key), *encode(key, 0)])


def encode_versioned(message: KafkaMessage, version: int) -> bytes:
    """Return a value of an internal topic, or metadata of a consumer: a version, then the rest."""
    return b"".join([PREFIX.pack(version), *encode(message, version)])


def prefix_of(data: Bytes) -> int:
    """Return the type of a key, or the version of a value."""
    try:
        number: int = PREFIX.unpack_from(data)[0]
    except struct.error:
        raise Malformed(f"{len(data)} bytes are too few for a type or a version") from None
    return number


def decode_key(kind: type[M], data: Bytes) -> M:
    """Read a key whose type was looked up in the `RECORDS` of its topic."""
    if prefix_of(data) != kind.VERSIONS.api_key:
        raise Malformed(f"a key of type {prefix_of(data)} is no {kind.VERSIONS.name}")
    return decode(kind, 0, data, PREFIX.size)


def decode_versioned(kind: type[M], data: Bytes, *, is_newer_allowed: bool = False) -> M:
    """Read what begins with its version. If newer versions are allowed, they are read as the last
    known one, and bytes after it are ignored: consumers count on it."""
    version = prefix_of(data)
    last = kind.VERSIONS.valid.last
    if is_newer_allowed and version > last:
        return decode(kind, last, data, PREFIX.size, is_whole=False)
    return decode(kind, version, data, PREFIX.size)
