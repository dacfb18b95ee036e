"""Compressed gRPC messages: told by how they begin, and decompressed with a cap.

gRPC could decompress by itself. It takes twice as long, and answers damaged bytes with INTERNAL,
as if the fault were ours. So it is told not to, and hands over each message as it came; whether
that one is compressed it does not say. The first bytes do:

- gzip begins with 1f 8b, which is no protobuf: 1f would be a field of wire type 7.
- zlib, which gRPC calls deflate, begins with 78. As protobuf that would be an unknown field number
  15, in front of all others. What does not decompress is taken as it is.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from frazil.errors import Malformed, TooLarge
from frazil.ingest.otlp.decompress import decompress
from frazil.model import KiB, MiB

GZIP_MAGIC = b"\x1f\x8b"
ZLIB_MAGICS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")

INLINE_BYTES_MAX = 128 * KiB
INLINE_OUTPUT_BYTES_MAX = 1 * MiB
"""Larger ones are decompressed on another thread, so that nobody waits behind them."""


async def unpack(message: bytes, bytes_max: int) -> bytes:
    """A message as it was before its sender compressed it. `TooLarge` above `bytes_max`."""
    if message.startswith(GZIP_MAGIC):
        return await _decompress("gzip", message, bytes_max)
    if message.startswith(ZLIB_MAGICS):
        with suppress(Malformed):
            return await _decompress("deflate", message, bytes_max)
    return message


async def _decompress(encoding: str, message: bytes, bytes_max: int) -> bytes:
    if len(message) <= INLINE_BYTES_MAX:
        with suppress(TooLarge):  # for this thread
            return decompress(encoding, message, min(bytes_max, INLINE_OUTPUT_BYTES_MAX))
    return await asyncio.to_thread(decompress, encoding, message, bytes_max)
