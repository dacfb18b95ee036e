"""Compression: round trips, and nothing exceeds the cap."""

from __future__ import annotations

import contextlib
import gzip
import struct
import tracemalloc
from collections.abc import Callable
from functools import partial

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import pytest
import snappy  # type: ignore[import-untyped]
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed, TooLarge
from frazil.log.format import compression as compression_module
from frazil.log.format.compression import (
    DECOMPRESSED_BYTES_MAX,
    LZ4_INDEPENDENT_BLOCKS,
    SNAPPY_HEADER,
    SNAPPY_MAGIC,
    Compression,
    compress,
    decompress,
)
from frazil.model import MiB

PACKED = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]

every_packing = pytest.mark.parametrize("compression", PACKED, ids=lambda c: c.name.lower())


def stuff(length: int) -> bytes:
    """Bytes that compress a little, with no period that hides a block put in the wrong place."""
    return b"".join(b"%d," % (number * number) for number in range(length // 2 + 1))[:length]


@given(compression=st.sampled_from(Compression), data=st.binary(max_size=5000))
def test_round_trip(compression: Compression, data: bytes) -> None:
    assert decompress(compression, compress(compression, data)) == data


@every_packing
@pytest.mark.parametrize("length", [1, 32 * 1024, 32 * 1024 + 1, 300_000, 2 * MiB])
def test_round_trip_across_blocks(compression: Compression, length: int) -> None:
    data = stuff(length)
    assert decompress(compression, compress(compression, data)) == data


@every_packing
def test_output_far_beyond_the_first_estimate_is_read(compression: Compression) -> None:
    data = bytes(20 * MiB)
    assert decompress(compression, compress(compression, data)) == data


@every_packing
@pytest.mark.parametrize("length", [1, 1000, 100_000])
def test_the_cap_is_exact(compression: Compression, length: int) -> None:
    """One byte more is too large, not malformed."""
    packed = compress(compression, stuff(length))
    assert len(decompress(compression, packed, bytes_max=length)) == length
    with pytest.raises(TooLarge):
        decompress(compression, packed, bytes_max=length - 1)


def bomb(compression: Compression, mebibytes: int) -> bytes:
    """Very many zeros in few bytes, made without ever holding the zeros."""
    chunk = bytes(MiB)
    if compression is Compression.SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(chunk))
        return SNAPPY_HEADER + (struct.pack(">i", len(block)) + block) * mebibytes
    if compression is Compression.GZIP:
        return gzip.compress(chunk) * mebibytes
    if compression is Compression.ZSTD:
        return bytes(cramjam.zstd.compress(chunk)) * mebibytes
    packer = cramjam.lz4.Compressor(1, block_linked=False, content_checksum=False)
    for _ in range(mebibytes):
        packer.compress(chunk)
    return bytes(packer.finish())


@every_packing
def test_a_bomb_is_refused(compression: Compression) -> None:
    """A gigabyte of zeros costs no more memory than the cap."""
    packed = bomb(compression, 1024)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decompress(compression, packed, bytes_max=8 * MiB)
        assert tracemalloc.get_traced_memory()[1] < 20 * MiB
    finally:
        tracemalloc.stop()


def test_single_stream_bombs_are_refused() -> None:
    """Within one gzip member, one zstd frame and one bare snappy block."""
    zeros = bytes(64 * MiB)
    for compression, packed in (
        (Compression.GZIP, bytes(cramjam.gzip.compress(zeros))),
        (Compression.ZSTD, bytes(cramjam.zstd.compress(zeros))),
        (Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(zeros))),
    ):
        with pytest.raises(TooLarge):
            decompress(compression, packed, bytes_max=MiB)


def test_a_snappy_block_that_claims_gigabytes_is_malformed() -> None:
    """No memory is allocated for it."""
    for claim in (b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x18"):
        for packed in (claim + b"abc", SNAPPY_HEADER + struct.pack(">i", 8) + claim[:5] + b"abc"):
            tracemalloc.start()
            try:
                with pytest.raises(Malformed):
                    decompress(Compression.SNAPPY, packed)
                assert tracemalloc.get_traced_memory()[1] < MiB
            finally:
                tracemalloc.stop()


def test_both_snappy_framings_are_read() -> None:
    """librdkafka sends one bare block, Java sends frames of any version."""
    data = stuff(100_000)
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data
    framed = compress(Compression.SNAPPY, data)
    assert framed.startswith(SNAPPY_MAGIC + bytes((0, 0, 0, 1, 0, 0, 0, 1)))
    other_order = SNAPPY_MAGIC + struct.pack("<ii", 1, 1) + framed[16:]
    assert decompress(Compression.SNAPPY, other_order) == data


BLOCK = bytes(cramjam.snappy.compress_raw(b"more"))


@pytest.mark.parametrize(
    "tail",
    [
        b"\0",
        b"\0\0\0",
        struct.pack(">i", 0),
        struct.pack(">i", -1),
        struct.pack(">i", len(BLOCK) + 1) + BLOCK,
        struct.pack(">i", len(BLOCK) - 1) + BLOCK,
    ],
)
def test_snappy_frames_with_a_wrong_length_are_malformed(tail: bytes) -> None:
    """Cut, not positive, or not that of the block."""
    with pytest.raises(Malformed):
        decompress(Compression.SNAPPY, compress(Compression.SNAPPY, b"good") + tail)


def streamed_zstd(data: bytes, *, write_checksum: bool = False) -> bytes:
    """In pieces, as clients write it: the content size is not known in advance."""
    stream = zstandard.ZstdCompressor(write_checksum=write_checksum).compressobj()
    pieces = [stream.compress(data[at : at + 5000]) for at in range(0, len(data), 5000)]
    return b"".join((*pieces, stream.flush()))


FRAMES: dict[str, tuple[Compression, Callable[[bytes], bytes]]] = {
    "gzip": (Compression.GZIP, gzip.compress),
    "snappy": (Compression.SNAPPY, snappy.compress),
    "lz4": (Compression.LZ4, partial(lz4.frame.compress, block_linked=False)),
    "lz4 without size": (
        Compression.LZ4,
        partial(lz4.frame.compress, block_linked=False, store_size=False),
    ),
    "lz4 with checksums": (
        Compression.LZ4,
        partial(
            lz4.frame.compress,
            block_linked=False,
            store_size=False,
            block_checksum=True,
            content_checksum=True,
        ),
    ),
    "zstd": (Compression.ZSTD, zstandard.ZstdCompressor().compress),
    "zstd without size": (
        Compression.ZSTD,
        zstandard.ZstdCompressor(write_content_size=False).compress,
    ),
    "zstd in pieces": (Compression.ZSTD, streamed_zstd),
    "zstd with checksum": (Compression.ZSTD, partial(streamed_zstd, write_checksum=True)),
}
"""Frames of other libraries, with and without the size of their content."""


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("gap_bytes", [0, 100])
def test_frames_are_read_in_one_go(
    name: str, gap_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into a buffer that is not much too large, also if the data compresses well."""
    compression, pack = FRAMES[name]
    rooms: list[int] = []

    def room_of(size: int) -> bytearray:
        rooms.append(size)
        return bytearray(size)

    monkeypatch.setattr(compression_module, "bytearray", room_of, raising=False)
    for length in (1, 200, 300, 65_792, 400_000):
        data = stuff(length).replace(b",", bytes(gap_bytes))[:length]
        rooms.clear()
        assert decompress(compression, pack(data)) == data
        assert len(rooms) == (0 if compression is Compression.GZIP else 1)
        assert all(len(data) <= room <= len(data) + 128 * 1024 for room in rooms)


def test_a_frame_that_claims_gigabytes_gets_a_small_buffer() -> None:
    huge = (2**40).to_bytes(8, "little")
    claims = {
        Compression.LZ4: bytes.fromhex("04224d18 6840") + huge + b"\0" * 40,
        Compression.ZSTD: bytes.fromhex("28b52ffd e0") + huge + b"\1\0\0",
    }
    for compression, packed in claims.items():
        tracemalloc.start()
        try:
            with pytest.raises(Malformed):
                decompress(compression, packed)
            assert tracemalloc.get_traced_memory()[1] < MiB
        finally:
            tracemalloc.stop()


def test_several_zstd_frames_are_one_stream() -> None:
    packed = compress(Compression.ZSTD, stuff(70_000)) + compress(Compression.ZSTD, b"more")
    assert decompress(Compression.ZSTD, packed) == stuff(70_000) + b"more"
    with pytest.raises(TooLarge):
        decompress(Compression.ZSTD, packed, bytes_max=70_003)


def test_gzip_members_are_one_stream() -> None:
    """The cap counts them together."""
    packed = gzip.compress(b"one, ") + gzip.compress(b"two")
    assert bytes(decompress(Compression.GZIP, packed, bytes_max=8)) == b"one, two"
    with pytest.raises(TooLarge):
        decompress(Compression.GZIP, packed, bytes_max=7)


def test_lz4_is_written_for_java() -> None:
    """Independent blocks, no content checksum: every Kafka client can read it."""
    flags = compress(Compression.LZ4, stuff(200_000))[4]
    assert flags & LZ4_INDEPENDENT_BLOCKS
    assert not flags & 0x04


def test_lz4_with_linked_blocks_is_refused() -> None:
    """Java consumers cannot read them."""
    linked = bytes(cramjam.lz4.compress(stuff(200_000)))
    assert not linked[4] & LZ4_INDEPENDENT_BLOCKS
    with pytest.raises(Malformed, match="linked"):
        decompress(Compression.LZ4, linked)


@every_packing
def test_truncation_is_malformed(compression: Compression) -> None:
    """Or, between two snappy blocks, shorter."""
    data = stuff(300)
    packed = compress(compression, data)
    for length in range(len(packed)):
        try:
            assert data.startswith(decompress(compression, packed[:length]))
            assert compression is Compression.SNAPPY and length == len(SNAPPY_HEADER)
        except Malformed:
            pass


@given(compression=st.sampled_from(PACKED), data=st.binary(max_size=200), prefixed=st.booleans())
def test_garbage_raises_only_our_errors(
    compression: Compression, data: bytes, prefixed: bool
) -> None:
    prefix = compress(compression, b"abc")[: 16 if compression is Compression.SNAPPY else 7]
    with contextlib.suppress(Malformed, TooLarge):
        decompress(compression, prefix * prefixed + data, bytes_max=MiB)


@every_packing
@given(flips=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), min_size=1, max_size=4))
def test_damage_raises_only_our_errors(
    compression: Compression, flips: list[tuple[int, int]]
) -> None:
    """Or decompresses to other data, which the batch's CRC refuses."""
    packed = bytearray(compress(compression, stuff(400)))
    for place, flip in flips:
        packed[place % len(packed)] ^= flip
    with contextlib.suppress(Malformed, TooLarge):
        decompress(compression, bytes(packed), bytes_max=MiB)


def test_the_writer_has_the_limit_of_the_reader() -> None:
    for compression in PACKED:
        with pytest.raises(TooLarge):
            compress(compression, bytes(DECOMPRESSED_BYTES_MAX + 1))
