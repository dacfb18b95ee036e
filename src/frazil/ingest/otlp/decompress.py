"""Decompression of request bodies, capped while the bytes come out.

A few bytes can claim to be gigabytes. What comes out is counted as it comes, so a body never
takes much more memory than the limit it breaks.
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
"""A gzip or zstd body may be several streams one after another; senders make one or a few, and
each costs something however small it is."""

PIECE_BYTES = 256 * 1024
"""Fed to gzip and deflate at a time: what a stream leaves over is copied, so little is offered."""

ZSTD_BLOCK_BYTES_MAX = 128 * 1024
ZSTD_BLOCK_BYTES_MIN = 4
"""A block of this many bytes, header and all, becomes at most that many: the format's densest."""
ZSTD_PIECE_BYTES_MIN = 16
"""Fed at least, so that it is not a byte at a time; may bring half a mebibyte above the limit."""
ZSTD_WINDOW_BYTES_MIN = 32 * 1024 * 1024
"""The widest window that senders choose, even for small bodies. Only what is filled of it becomes
memory, and that is no more than what comes out."""

ISAL_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]
"""Its stub says that this class is an instance."""

GZIP = 16 + zlib.MAX_WBITS
RAW = -zlib.MAX_WBITS
"""How zlib's interface is told what is around the deflated bytes."""


def decompress(encoding: str, data: bytes, bytes_max: int) -> bytes:
    """The body that `data` stands for in one of `ENCODINGS`.

    `TooLarge` as soon as more than `bytes_max` come out; `Malformed` for bytes that are damaged,
    end too early, or go on after the end.
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
            # By the standard it is wrapped as zlib does; some senders leave the wrapper off.
            # Not by isal, which overlooks bytes that follow the end, unless it is gzip.
            inflate = zlib.decompressobj(zlib.MAX_WBITS if _is_zlib(data) else RAW)
            return _streams(data, bytes_max, encoding, lambda: _Inflate(inflate), members_max=1)
        case _:
            raise Malformed(f"{encoding!r} is not an encoding known here: {', '.join(ENCODINGS)}")


class _Stream(Protocol):
    """One compressed stream on its way."""

    def feed(self, rest: memoryview, room_bytes: int) -> tuple[bytes, int]:
        """Take some of `rest`. Returns what came out, and how much was taken.

        What comes out ends soon after `room_bytes`.
        """

    @property
    def is_over(self) -> bool: ...


class _Inflater(Protocol):
    """What zlib and isal both have."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: memoryview, max_length: int, /) -> bytes: ...


class _Inflate:
    """A stream of gzip or deflate."""

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
    """A frame of zstd. The library has no limit on output, so the input is kept short instead."""

    def __init__(self, decompressor: zstandard.ZstdDecompressor) -> None:
        self._frame = decompressor.decompressobj()

    def feed(self, rest: memoryview, room_bytes: int) -> tuple[bytes, int]:
        harmless = room_bytes // ZSTD_BLOCK_BYTES_MAX * ZSTD_BLOCK_BYTES_MIN
        piece = rest[: max(ZSTD_PIECE_BYTES_MIN, harmless)]
        output = self._frame.decompress(piece)
        return output, len(piece) - len(self._frame.unused_data)

    @property
    def is_over(self) -> bool:
        return self._frame.eof


class _Output:
    """What has come out so far."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self.room_bytes = bytes_max

    def add(self, part: bytes) -> None:
        self.room_bytes -= len(part)
        if self.room_bytes < 0:
            raise TooLarge(
                f"the body is above {self._bytes_max} bytes once decompressed; send smaller batches"
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
    """Decompress streams one after another until there are no bytes left."""
    output, rest = _Output(bytes_max), memoryview(data)
    for _ in range(members_max):
        stream = begin()
        try:
            while not stream.is_over:
                part, taken = stream.feed(rest, output.room_bytes)
                rest = rest[taken:]
                output.add(part)
                if not part and not taken:
                    raise Malformed(f"the {encoding} body ends too early, at byte {len(data)}")
        except (zlib.error, ISAL_ERROR, zstandard.ZstdError) as error:
            raise Malformed(f"the {encoding} body does not decompress: {error}") from None
        if not rest:
            return output.whole()
    raise Malformed(
        f"{len(rest)} bytes follow the end of the {encoding} body"
        + (f" and its {members_max} streams" if members_max > 1 else "")
    )


def _is_zlib(data: bytes) -> bool:
    """Has this the two bytes that zlib begins with? No raw stream of any encoder does."""
    header = int.from_bytes(data[:2], "big")
    return header >> 8 & 0x0F == zlib.DEFLATED and header % 31 == 0


def _window_bytes_max(bytes_max: int) -> int:
    """No body within the limit needs to look back farther; windows are powers of two."""
    return max(ZSTD_WINDOW_BYTES_MIN, 1 << (bytes_max - 1).bit_length())
