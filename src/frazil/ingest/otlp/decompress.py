"""Decompression of request bodies, with a cap on the output.

A few bytes can expand to gigabytes. The output is counted as it is produced, so a body never takes
much more memory than the limit it exceeds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

import zstandard
from isal import isal_zlib

from frazil.errors import Malformed, TooLarge

ENCODINGS = ("identity", "gzip", "zstd", "deflate")
"""Names of `Content-Encoding`, in lower case."""

MEMBERS_MAX = 64
"""Concatenated gzip or zstd streams per body. Clients send one or a few; each has a fixed cost,
however small it is."""

PIECE_BYTES = 256 * 1024
"""Input fed to gzip and deflate at a time. Small, since unconsumed input is copied."""

ZSTD_BLOCK_BYTES_MAX = 128 * 1024
ZSTD_BLOCK_BYTES_MIN = 4
"""The densest block of the format: 4 bytes, with its header, expand to 128 KiB."""
ZSTD_PIECE_BYTES_MIN = 16
"""Least input fed at a time. The output may exceed the limit by 512 KiB."""
ZSTD_WINDOW_BYTES_MIN = 32 * 1024 * 1024
"""The largest window that clients choose, even for small bodies. It takes memory only as far as it
is filled, which is no more than the output."""

ISAL_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]
"""The type stub declares this class as an instance."""

GZIP = 16 + zlib.MAX_WBITS
RAW = -zlib.MAX_WBITS
"""zlib's `wbits` for a gzip wrapper, and for none."""


def decompress(encoding: str, data: bytes, bytes_max: int) -> bytes:
    """Return the decompressed body. `encoding` is one of `ENCODINGS`.

    Raises `TooLarge` as soon as the output exceeds `bytes_max`, and `Malformed` for input that is
    damaged, truncated, or followed by other bytes.
    """
    match encoding:
        case "identity":
            return _Output(bytes_max).whole(data)
        case "gzip":
            return _streams(
                data, bytes_max, encoding, lambda: _Inflate(isal_zlib.decompressobj(GZIP))
            )
        case "zstd":
            decompressor = zstandard.ZstdDecompressor(max_window_size=_window_bytes_max(bytes_max))
            return _streams(data, bytes_max, encoding, lambda: _Unzstd(decompressor))
        case "deflate":
            # The standard asks for zlib's wrapper; some clients omit it. Not isal, which ignores
            # bytes after the end of a stream, except for gzip.
            inflate = zlib.decompressobj(zlib.MAX_WBITS if _is_zlib(data) else RAW)
            return _streams(data, bytes_max, encoding, lambda: _Inflate(inflate), members_max=1)
        case _:
            raise Malformed(f"{encoding!r} is not a supported encoding: {', '.join(ENCODINGS)}")


class _Stream(Protocol):
    """One compressed stream."""

    def feed(self, rest: memoryview, room_bytes: int) -> tuple[bytes, int]:
        """Consume some of `rest`. Returns the output and the number of bytes consumed.

        The output exceeds `room_bytes` only slightly.
        """

    @property
    def is_over(self) -> bool: ...


class _Inflater(Protocol):
    """The interface shared by zlib and isal."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: memoryview, max_length: int, /) -> bytes: ...


class _Inflate:
    """A gzip or deflate stream."""

    def __init__(self, inflate: _Inflater) -> None:
        self._inflate = inflate

    def feed(self, rest: memoryview, room_bytes: int) -> tuple[bytes, int]:
        piece = rest[:PIECE_BYTES]
        output = self._inflate.decompress(piece, room_bytes + 1)
        left = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
        return output, len(piece) - len(left)

    @property
    def is_over(self) -> bool:
        return self._inflate.eof


class _Unzstd:
    """A zstd frame. The library cannot limit its output, so the input is kept short instead."""

    def __init__(self, decompressor: zstandard.ZstdDecompressor) -> None:
        self._frame = decompressor.decompressobj()

    def feed(self, rest: memoryview, room_bytes: int) -> tuple[bytes, int]:
        safe_bytes = room_bytes // ZSTD_BLOCK_BYTES_MAX * ZSTD_BLOCK_BYTES_MIN
        piece = rest[: max(ZSTD_PIECE_BYTES_MIN, safe_bytes)]
        output = self._frame.decompress(piece)
        return output, len(piece) - len(self._frame.unused_data)

    @property
    def is_over(self) -> bool:
        return self._frame.eof


class _Output:
    """The output so far."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self.room_bytes = bytes_max

    def add(self, part: bytes) -> None:
        self.room_bytes -= len(part)
        if self.room_bytes < 0:
            raise TooLarge(
                f"the body exceeds {self._bytes_max} bytes once decompressed; send smaller batches"
            )
        if part:
            self._parts.append(part)

    def whole(self, last: bytes = b"") -> bytes:
        self.add(last)
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


def _streams(
    data: bytes,
    bytes_max: int,
    encoding: str,
    begin: Callable[[], _Stream],
    members_max: int = MEMBERS_MAX,
) -> bytes:
    """Decompress concatenated streams until the input ends."""
    output, rest = _Output(bytes_max), memoryview(data)
    for _ in range(members_max):
        stream = begin()
        try:
            while not stream.is_over:
                part, consumed = stream.feed(rest, output.room_bytes)
                rest = rest[consumed:]
                output.add(part)
                if not part and not consumed:
                    raise Malformed(f"the {encoding} body is truncated at byte {len(data)}")
        except (zlib.error, ISAL_ERROR, zstandard.ZstdError) as error:
            raise Malformed(f"the {encoding} body does not decompress: {error}") from None
        if not rest:
            return output.whole()
    raise Malformed(
        f"{len(rest)} bytes follow the end of the {encoding} body"
        + (f" and its {members_max} streams" if members_max > 1 else "")
    )


def _is_zlib(data: bytes) -> bool:
    """Return whether the data begins with zlib's two-byte header. No encoder's raw stream does."""
    header = int.from_bytes(data[:2], "big")
    return header >> 8 & 0x0F == zlib.DEFLATED and header % 31 == 0


def _window_bytes_max(bytes_max: int) -> int:
    """Return a power of two that no body within the limit needs to look back beyond."""
    return max(ZSTD_WINDOW_BYTES_MIN, 1 << (bytes_max - 1).bit_length())
