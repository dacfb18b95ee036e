"""Decompression: the original bytes, or a refusal that takes no more memory than the limit."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed, TooLarge
from frazil.ingest.otlp.decompress import (
    ENCODINGS,
    MEMBERS_MAX,
    PIECE_BYTES,
    ZSTD_BLOCK_BYTES_MAX,
    ZSTD_WINDOW_BYTES_MIN,
    decompress,
)
from frazil.model import KiB, MiB

pack_gzip = partial(gzip.compress, mtime=0)
"""Deterministic, so that test ids are the same in every run."""

TEXT = b"".join(b"record %d says hello; " % number for number in range(2000))
EMPTY_GZIP = pack_gzip(b"")
EMPTY_ZSTD = zstandard.compress(b"")
SKIPPED_ZSTD = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def streamed_zstd(data: bytes, window_log: int = 0) -> bytes:
    """Return a frame without a content size, as streaming clients write it."""
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(data) + packer.flush()


def checked_zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "identity": ("identity", bytes),
    "gzip": ("gzip", pack_gzip),
    "stored gzip": ("gzip", lambda data: pack_gzip(data, 0)),
    "zstd": ("zstd", zstandard.compress),
    "streamed zstd": ("zstd", streamed_zstd),
    "zstd with a checksum": ("zstd", checked_zstd),
    "deflate": ("deflate", zlib.compress),
    "stored deflate": ("deflate", lambda data: zlib.compress(data, 0)),
    "raw deflate": ("deflate", raw_deflate),
}
COMPRESSED = [name for name, (encoding, _) in PACKERS.items() if encoding != "identity"]
CHECKED = ["gzip", "stored gzip", "zstd with a checksum", "deflate", "stored deflate"]
"""Formats with a checksum of their content."""


@pytest.mark.parametrize("data", [b"", b"x", TEXT, bytes(3 * PIECE_BYTES)], ids=len)
@pytest.mark.parametrize("name", PACKERS)
def test_every_encoding_round_trips(name: str, data: bytes) -> None:
    """At exactly the limit as well."""
    encoding, pack = PACKERS[name]
    assert decompress(encoding, pack(data), len(data) or 1) == data


@pytest.mark.parametrize("name", PACKERS)
def test_one_byte_above_the_limit_is_too_large(name: str) -> None:
    encoding, pack = PACKERS[name]
    with pytest.raises(TooLarge, match="smaller batches"):
        decompress(encoding, pack(TEXT), len(TEXT) - 1)


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_truncated_body_is_malformed(name: str) -> None:
    """Wherever it is cut."""
    encoding, pack = PACKERS[name]
    data = pack(TEXT[:300])
    for length in range(len(data)):
        with pytest.raises(Malformed):
            decompress(encoding, data[:length], MiB)


@pytest.mark.parametrize("tail", [b"\0", b"x", b"trailing", bytes(20), b"\xff" * 300])
@pytest.mark.parametrize("name", COMPRESSED)
def test_bytes_after_the_end_are_malformed(name: str, tail: bytes) -> None:
    encoding, pack = PACKERS[name]
    for data in (b"", b"x", TEXT):
        with pytest.raises(Malformed):
            decompress(encoding, pack(data) + tail, MiB)


@pytest.mark.parametrize("name", CHECKED)
def test_a_flipped_bit_never_changes_the_output(name: str) -> None:
    """With a checksum, damaged input gives the right body or none."""
    encoding, pack = PACKERS[name]
    data = pack(TEXT[:200])
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            assert decompress(encoding, bytes(damaged), MiB) == TEXT[:200]
        except (Malformed, TooLarge):
            continue


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", b""),
        ("gzip", b"not gzip at all"),
        ("gzip", zlib.compress(TEXT)),
        ("zstd", b""),
        ("zstd", b"not zstd at all"),
        ("zstd", pack_gzip(TEXT)),
        ("deflate", b""),
        ("deflate", b"\x78\x9c"),
        ("deflate", b"not deflate at all"),
        ("deflate", pack_gzip(TEXT)),
        ("deflate", zlib.compress(TEXT) * 2),
        ("deflate", b"\x78\xbb" + zlib.compress(TEXT)[2:]),
        ("br", TEXT),
        ("GZIP", pack_gzip(TEXT)),
    ],
)
def test_other_bytes_and_unknown_encodings_are_malformed(encoding: str, data: bytes) -> None:
    with pytest.raises(Malformed):
        decompress(encoding, data, MiB)


@pytest.mark.parametrize(
    ("encoding", "parts"),
    [
        ("gzip", [pack_gzip(TEXT[:100]), pack_gzip(TEXT[100:])]),
        ("gzip", [EMPTY_GZIP] * (MEMBERS_MAX - 1) + [pack_gzip(TEXT)]),
        ("zstd", [zstandard.compress(TEXT[:100]), checked_zstd(TEXT[100:])]),
        ("zstd", [streamed_zstd(TEXT[:100]), EMPTY_ZSTD, streamed_zstd(TEXT[100:])]),
        ("zstd", [SKIPPED_ZSTD, zstandard.compress(TEXT), SKIPPED_ZSTD]),
    ],
)
def test_concatenated_streams_are_one_body(encoding: str, parts: list[bytes]) -> None:
    assert decompress(encoding, b"".join(parts), MiB) == TEXT


@pytest.mark.parametrize(
    ("encoding", "part"),
    [
        ("gzip", EMPTY_GZIP),
        ("gzip", pack_gzip(b"x")),
        ("zstd", EMPTY_ZSTD),
        ("zstd", SKIPPED_ZSTD),
    ],
)
def test_too_many_streams_are_malformed(encoding: str, part: bytes) -> None:
    """Ten thousand are refused after the first few."""
    assert decompress(encoding, part * MEMBERS_MAX, MiB) in (b"", b"x" * MEMBERS_MAX)
    with pytest.raises(Malformed, match=f"its {MEMBERS_MAX} streams"):
        decompress(encoding, part * 10_000, MiB)


def test_a_too_large_zstd_window_is_refused() -> None:
    """Before memory is allocated for it."""
    data = bytes(100)
    within = ZSTD_WINDOW_BYTES_MIN.bit_length() - 1
    assert decompress("zstd", streamed_zstd(data, window_log=within), KiB) == data
    with pytest.raises(Malformed, match="too much memory"):
        decompress("zstd", streamed_zstd(data, window_log=within + 1), KiB)
    wide = streamed_zstd(data, window_log=within + 1)
    assert decompress("zstd", wide, ZSTD_WINDOW_BYTES_MIN + 1) == data


def rle_bomb(blocks: int) -> bytes:
    """Return the densest zstd: 4 bytes expand to 128 KiB of zeros."""
    magic, descriptor, window = b"\x28\xb5\x2f\xfd", b"\x00", b"\x38"
    block = (ZSTD_BLOCK_BYTES_MAX << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return magic + descriptor + window + block * blocks


BOMBS = {
    "gzip": ("gzip", pack_gzip(bytes(256 * MiB), 1)),
    "deflate": ("deflate", zlib.compress(bytes(256 * MiB), 1)),
    "zstd": ("zstd", streamed_zstd(bytes(256 * MiB))),
    "zstd of the densest blocks": ("zstd", rle_bomb(8192)),
    "zstd that says how long it is": ("zstd", zstandard.compress(bytes(256 * MiB))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_more_than_twice_the_limit(name: str) -> None:
    """The output is stopped at the limit while it is produced."""
    encoding, bomb = BOMBS[name]
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decompress(encoding, bomb, 4 * MiB)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes <= 2 * 4 * MiB + 2 * PIECE_BYTES


def reference(encoding: str, data: bytes) -> bytes | None:
    """Return the output of zlib or zstd for one stream; None if they refuse it."""
    try:
        if encoding == "zstd":
            frame = zstandard.ZstdDecompressor().decompressobj()
            whole = frame.decompress(data)
            return whole if frame.eof and not frame.unused_data else None
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        whole = inflate.decompress(data)
        return whole if inflate.eof and not inflate.unused_data else None
    except (zlib.error, zstandard.ZstdError):
        return None


@given(
    name=st.sampled_from(["gzip", "zstd", "streamed zstd"]),
    data=st.binary(max_size=200),
    position=st.integers(0, 400),
    removed=st.integers(0, 3),
    inserted=st.binary(max_size=3),
)
def test_damaged_input_is_treated_as_by_zlib_and_zstd(
    name: str, data: bytes, position: int, removed: int, inserted: bytes
) -> None:
    """What zlib alone refuses may be accepted only if the checksum proves that nothing is lost."""
    encoding, pack = PACKERS[name]
    packed = pack(data)
    damaged = packed[:position] + inserted + packed[position + removed :]
    expected = reference(encoding, damaged)
    try:
        found = decompress(encoding, damaged, MiB)
    except Malformed:
        assert expected is None
    else:
        assert found == (data if expected is None and encoding == "gzip" else expected)


def test_every_encoding_has_a_case() -> None:
    assert {encoding for encoding, _ in PACKERS.values()} == set(ENCODINGS)
