"""Requests and responses as frames: what comes before the message, on both sides.

    size int32 | api_key int16, api_version int16, correlation_id int32, client_id | request
    size int32 | correlation_id int32 | response

Flexible versions have tagged fields at the end of the header. None is known, so they are skipped,
and an empty section is written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

from frazil.errors import Malformed
from frazil.kafka.wire.apis import API_VERSIONS, APIS
from frazil.kafka.wire.codec import decode, decoder_of, encode
from frazil.kafka.wire.primitives import ELEMENTS_MAX, skip_tags
from frazil.kafka.wire.schema import Bytes, KafkaMessage

REQUEST = struct.Struct(">hhih")
"""Key, version, correlation id, length of the client id."""
SIZED_ID = struct.Struct(">ii")
SIZED_ID_TAGS = struct.Struct(">iix")
FRAME_BYTES_MAX = 0x7FFF_FFFF

R = TypeVar("R", bound=KafkaMessage)


class RequestHeader(NamedTuple):
    """What a request says before its message."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size: int
    """Bytes of the header: the message begins here."""


def decode_request_header(frame: Bytes) -> RequestHeader:
    """Read the header of a request, without the size in front of it. Key and version may be unknown
    ones: the client must be told, and that needs the correlation id."""
    view = memoryview(frame)
    try:
        key, version, correlation_id, length = REQUEST.unpack_from(view)
    except struct.error:
        raise Malformed(f"a request of {len(view)} bytes has no header") from None
    at = REQUEST.size
    client_id = None
    if length >= 0:
        try:
            client_id = str(view[at : at + length], "utf-8")
        except UnicodeDecodeError as error:
            raise Malformed(f"the client id is not UTF-8: {error}") from None
        at += length
    if length < -1 or at > len(view):
        raise Malformed(f"the client id cannot have length {length}")
    api = APIS.get(key)
    if api is not None and version in api.flexible:
        at = _skip_header_tags(view, at)
    return RequestHeader(key, version, correlation_id, client_id, at)


def _skip_header_tags(view: memoryview, at: int) -> int:
    try:
        return skip_tags(view, at, len(view), ELEMENTS_MAX)[0] if view[at] else at + 1
    except IndexError:
        raise Malformed("the header ends too early") from None


def decode_request(header: RequestHeader, frame: Bytes) -> KafkaMessage:
    """Read the message of a request whose header was read. Raises Malformed for an API or version
    that the codecs do not have; `APIS` has those they do. Bytes after the message are ignored, as
    Kafka does: librdkafka 2.16 asks for all topics with three bytes too many."""
    view = memoryview(frame)
    read = _request_decoder(header.api_key, header.api_version)
    message: KafkaMessage = read(view, header.size, len(view), False)
    return message


@cache
def _request_decoder(key: int, version: int) -> Callable[..., Any]:
    api = APIS.get(key)
    if api is None:
        raise Malformed(f"there is no API {key}")
    return decoder_of(api.request, version)


def encode_response(response: KafkaMessage, version: int, correlation_id: int) -> list[Bytes]:
    """Return a response as a frame, size in front, in chunks. Records are not copied."""
    chunks = encode(response, version)
    head = SIZED_ID_TAGS if _has_tags(type(response), version) else SIZED_ID
    size = sum(map(len, chunks)) + head.size - 4
    if size > FRAME_BYTES_MAX:
        raise Malformed(f"a response of {size} bytes is larger than a frame can be")
    chunks[0] = head.pack(size, correlation_id) + chunks[0]
    return chunks


@cache
def _has_tags(kind: type[KafkaMessage], version: int) -> bool:
    """Has the header of this response tagged fields?"""
    return version in kind.VERSIONS.flexible and kind.VERSIONS.api_key != API_VERSIONS


def encode_request(
    request: KafkaMessage, version: int, correlation_id: int, client_id: str | None
) -> list[Bytes]:
    """Return a request as a frame, size in front, in chunks."""
    chunks = encode(request, version)
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    try:
        head = REQUEST.pack(request.VERSIONS.api_key, version, correlation_id, length) + name
    except struct.error as error:
        raise Malformed(f"the header of a request cannot be written: {error}") from None
    if version in request.VERSIONS.flexible:
        head += b"\0"
    size = len(head) + sum(map(len, chunks))
    if size > FRAME_BYTES_MAX:
        raise Malformed(f"a request of {size} bytes is larger than a frame can be")
    chunks[0] = size.to_bytes(4, "big") + head + chunks[0]
    return chunks


def decode_response(kind: type[R], version: int, frame: Bytes) -> tuple[int, R]:
    """Read a response, without the size in front of it, and return the correlation id with it."""
    view = memoryview(frame)
    if len(view) < 4:
        raise Malformed(f"a response of {len(view)} bytes has no header")
    at = 4
    if _has_tags(kind, version):
        at = _skip_header_tags(view, at)
    return int.from_bytes(view[:4], "big", signed=True), decode(kind, version, view, at)
