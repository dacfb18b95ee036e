"""A record of a topic as JSON. Keys and values are bytes, shown as what they are: JSON, text, or
hexadecimal digits of anything else."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from frazil.log import Record
from frazil.model import KiB, MiB, doc

FIELD_BYTES, FIELD_BYTES_MAX = 4 * KiB, MiB
"""Bytes of a key, value or header that are returned: by default, and at most."""
HEADERS_MAX = 100
"""Headers of one message that are returned."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Characters that text does not have."""


class MessageData(msgspec.Struct, frozen=True, kw_only=True):
    """A key, value or header value."""

    format: Annotated[
        Literal["json", "text", "hex"], doc("`json`: an object or array. `hex`: not text.")
    ]
    text: str
    size_bytes: Annotated[int, doc("Size as stored.")]
    is_cut: Annotated[bool, doc("True if `text` is only its beginning: see `bytes_max`.")]


class MessageHeader(msgspec.Struct, frozen=True, kw_only=True):
    """A header of a message."""

    name: str
    value: MessageData | None


class TopicMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: MessageData | None
    value: Annotated[MessageData | None, doc("Null is a tombstone in a compacted topic.")]
    headers: Annotated[list[MessageHeader], doc("At most 100.")]
    header_count: int


def message_of(record: Record, partition: int, bytes_max: int) -> TopicMessage:
    """Return a record with at most `bytes_max` bytes of each field."""
    return TopicMessage(
        partition=partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=data_of(record.key, bytes_max),
        value=data_of(record.value, bytes_max),
        headers=[
            MessageHeader(name=name, value=data_of(value, bytes_max))
            for name, value in record.headers[:HEADERS_MAX]
        ],
        header_count=len(record.headers),
    )


def data_of(data: bytes | None, bytes_max: int) -> MessageData | None:
    """Return bytes as JSON, text or hexadecimal digits. Cut JSON is text."""
    if data is None:
        return None
    is_cut = len(data) > bytes_max
    text = _text(data[:bytes_max], is_cut=is_cut)
    kind: Literal["json", "text", "hex"] = "text"
    if text is None:
        kind, text = "hex", data[:bytes_max].hex()
    elif not is_cut and _is_json(data):
        kind = "json"
    return MessageData(format=kind, text=text, size_bytes=len(data), is_cut=is_cut)


def text_bytes(message: TopicMessage) -> int:
    """Return about how many bytes a message has as JSON."""
    values = (message.key, message.value, *(header.value for header in message.headers))
    return 200 + sum(len(value.text) + 80 for value in values if value is not None)


def _text(data: bytes, *, is_cut: bool) -> str | None:
    """Return UTF-8 without control characters as text, else None."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        # The last character may be cut in two.
        if not is_cut or error.reason != "unexpected end of data":
            return None
        text = data[: error.start].decode()
    return None if _CONTROL.search(text) else text


def _is_json(data: bytes) -> bool:
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
