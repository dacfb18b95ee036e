"""Arrow IPC streams in memory, as they lie in a segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google_crc32c import extend as extend_crc32c

ALIGNMENT = 64
"""Streams are padded to a multiple of this, so that the next section begins at one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedStream:
    """A stream that was written."""

    check: int
    """CRC32C of its bytes, with the padding."""
    messages: list[tuple[int, int]]
    """Position in the stream, and length, of each record batch's message."""


def measure_stream(batches: Sequence[pa.RecordBatch]) -> int:
    """Return the bytes of a stream, with the padding."""
    sink = pa.MockOutputStream()
    _write(sink, batches)
    size: int = sink.size()
    return -(-size // ALIGNMENT) * ALIGNMENT


def encode_stream(batches: Sequence[pa.RecordBatch], into: memoryview) -> EncodedStream:
    """Write batches of one schema, which share their dictionaries, as one stream. It fills `into`,
    as measured."""
    data = pa.py_buffer(into)
    sink = pa.FixedSizeBufferWriter(data)
    messages = _write(sink, batches)
    sink.write(bytes(len(into) - sink.tell()))
    return EncodedStream(check=extend_crc32c(0, data), messages=messages)


def _write(sink: Any, batches: Sequence[pa.RecordBatch]) -> list[tuple[int, int]]:
    messages = []
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)  # before the first one, also the dictionaries
            length = pa.ipc.get_record_batch_size(batch)
            messages.append((sink.tell() - length, length))
    return messages


def decode_stream(data: pa.Buffer, *, is_verified: bool) -> list[pa.RecordBatch]:
    """Return the batches without copying. Raises `ArrowInvalid` or `OSError` for a bad stream.

    Reads no rows of a stream that was verified before.
    """
    with pa.ipc.open_stream(data) as reader:
        batches = list(reader)
    if not is_verified:
        for batch in batches:
            batch.validate()
    return batches
