"""Compressed gRPC messages: detected by their first bytes, decompressed with a cap.

gRPC's own decompression takes twice as long and answers damaged bytes with INTERNAL, as if the
server were at fault. It is turned off, so gRPC hands over each message as it came, without saying
whether it is compressed. The first bytes tell:

- gzip begins with 1f 8b, which is not protobuf: 1f would be a field of wire type 7.
- zlib, which gRPC calls deflate, begins with 78. As protobuf that would be an unknown field number
  15 before all others. A message that does not decompress is taken as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from frazil.errors import Malformed

GZIP_MAGIC = b"\x1f\x8b"
ZLIB_MAGICS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


async def unpack(message: bytes, decompress: Callable[[str, bytes], Awaitable[bytes]]) -> bytes:
    """Return a message as it was before compression, by `decompress(encoding, message)`."""
    if message.startswith(GZIP_MAGIC):
        return await decompress("gzip", message)
    if message.startswith(ZLIB_MAGICS):
        with suppress(Malformed):
            return await decompress("deflate", message)
    return message
