"""Decompress a stream of text, in bounded memory."""

from __future__ import annotations

import io
import struct
from typing import IO, Any, cast

import pyarrow as pa
from isal import igzip

from frazil.definitions import FileCompression
from frazil.errors import Malformed

EXTENSIONS: dict[str, FileCompression] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".sz": "snappy",
    ".snappy": "snappy",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".lz4": "lz4",
    ".br": "brotli",
}
SNAPPY_CHUNK_MAX = 1 << 24
SNAPPY_BLOCK_MAX = 65536
"""The framing format limits the uncompressed bytes of a chunk."""
COMPRESSED, PLAIN, IDENTIFIER = 0x00, 0x01, 0xFF
SKIPPABLE = range(0x80, 0xFF)
CHECKSUM_BYTES = 4


def compression_of(path: str, wanted: FileCompression) -> FileCompression:
    """Return the compression of a file: the wanted one, or for `auto` the one of its name."""
    if wanted != "auto":
        return wanted
    extension = f".{path.rpartition('.')[2].lower()}" if "." in path else ""
    return EXTENSIONS.get(extension, "none")


def without_compression(path: str) -> str:
    """Return a path without the extension of a compression."""
    stem, dot, extension = path.rpartition(".")
    return stem if dot and f".{extension.lower()}" in EXTENSIONS else path


def decompressed(stream: IO[bytes], compression: FileCompression) -> IO[bytes]:
    """Return the uncompressed bytes of a stream. Reading raises `OSError` or `EOFError` (also
    `ArrowException`) if it is damaged or ends too early."""
    if compression in ("none", "auto"):
        return stream
    if compression == "gzip":
        plain: Any = igzip.IGzipFile(fileobj=stream, mode="rb")  # type: ignore[no-untyped-call]
        return cast(IO[bytes], plain)
    if compression == "snappy":
        return io.BufferedReader(_SnappyFrames(stream))
    source: Any = pa.PythonFile(stream, mode="r")
    return cast(IO[bytes], pa.CompressedInputStream(source, compression))


class _SnappyFrames(io.RawIOBase):
    """The framing format of Snappy: chunks of at most 64 KiB with a type, a length and a CRC."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self._codec = pa.Codec("snappy")
        self._rest = b""
        self._has_begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = self._next()
            if chunk is None:
                return 0
            self._rest = chunk
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _next(self) -> bytes | None:
        head = self._stream.read(4)
        if not head:
            return None
        kind, length = head[0], int.from_bytes(head[1:4], "little")
        body = self._stream.read(length)
        if len(head) < 4 or len(body) < length:
            raise EOFError("the Snappy stream ends in the middle of a chunk")
        if not self._has_begun and (kind, body) != (IDENTIFIER, b"sNaPpY"):
            raise OSError("the file is not in Snappy's framing format")
        self._has_begun = True
        if kind in (COMPRESSED, PLAIN):
            data = body[CHECKSUM_BYTES:]
            if kind == COMPRESSED:
                data = self._decompress(data)
            _check_crc(data, body[:CHECKSUM_BYTES])
            return data
        if kind == IDENTIFIER or kind in SKIPPABLE:
            return b""
        raise OSError(f"the Snappy stream has a chunk of unknown type {kind:#x}")

    def _decompress(self, data: bytes) -> bytes:
        size, shift = 0, 0
        for byte in data[:5]:
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if size > SNAPPY_BLOCK_MAX:
            raise OSError(f"a Snappy chunk claims {size} bytes")
        result: bytes = self._codec.decompress(data, size, asbytes=True)
        return result


def _check_crc(data: bytes, wanted: bytes) -> None:
    from google_crc32c import value

    crc: int = value(data)
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    if struct.pack("<I", masked) != wanted:
        raise OSError("a Snappy chunk fails its checksum")


def require_plain(path: str, compression: FileCompression, what: str) -> None:
    """Raise `Malformed` for a file of a format that has compression inside."""
    if compression_of(path, compression) not in ("none", "auto"):
        raise Malformed(
            f"{path} is compressed as a whole, but {what} files are compressed inside; decompress "
            "it, or set COMPRESSION=NONE if only its name says so"
        )
