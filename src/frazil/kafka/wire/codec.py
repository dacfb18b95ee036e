"""encode and decode: a message to bytes and back. Each version is compiled when first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from frazil.errors import Malformed
from frazil.kafka.wire.decoder import write_decoder
from frazil.kafka.wire.encoder import write_encoder
from frazil.kafka.wire.layout import Layout
from frazil.kafka.wire.schema import Bytes, KafkaMessage

M = TypeVar("M", bound=KafkaMessage)


def decode(kind: type[M], version: int, data: Bytes, at: int = 0, *, is_whole: bool = True) -> M:
    """Read a message from the bytes from `at` to the end. Bytes that are left over are an error,
    unless `is_whole` is false. Fields of kind `records` are views of `data`; everything else is
    copied. Raises Malformed only."""
    view = memoryview(data)
    message: M = decoder_of(kind, version)(view, at, len(view), is_whole)
    return message


def encode(message: KafkaMessage, version: int) -> list[Bytes]:
    """Write a message as chunks of bytes. Records are the objects that the message holds. Raises
    Malformed if a value does not fit, or if this version lacks a field that must not be lost."""
    chunks: list[Bytes] = encoder_of(type(message), version)(message)
    return chunks


@cache
def decoder_of(kind: type[KafkaMessage], version: int) -> Callable[..., Any]:
    """Return the compiled reader of one version: `decode(view, at, end, is_whole)`."""
    layout = _layout(kind, version)
    return write_decoder(layout).build("decode", f"decode {layout.name} {version}")


@cache
def encoder_of(kind: type[KafkaMessage], version: int) -> Callable[..., Any]:
    """Return the compiled writer of one version: `encode(message)`."""
    layout = _layout(kind, version)
    return write_encoder(layout).build("encode", f"encode {layout.name} {version}")


def _layout(kind: type[KafkaMessage], version: int) -> Layout:
    valid = kind.VERSIONS.valid
    if version not in valid:
        name = kind.VERSIONS.name
        raise Malformed(f"{name} has no version {version}; there are {valid.first} to {valid.last}")
    return Layout(kind, version)
