"""Frames: bytes verify themselves, or are refused."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from frazil.disk import (
    HEAD_BYTES,
    PAYLOAD_BYTES_MAX,
    SALT_BYTES,
    File,
    Frame,
    find_frames,
    frame_header,
    walk_frames,
)
from frazil.disk.frames import CHUNK_BYTES, FRAME_HEADER, FRAME_MAGIC, parse_frame
from tests.sim.disk import SimDisk

SALT, OTHER_SALT = b"saltsalt", b"saltsals"
PAYLOAD = bytes(range(200))
NUMBERS = st.integers(0, 2**64 - 1)


def framed(
    payload: bytes, base_offset: int = 7, watermark: int = 5, flags: int = 1, salt: bytes = SALT
) -> bytes:
    head = payload[:HEAD_BYTES]
    return frame_header(head, len(payload), base_offset, watermark, flags, salt) + payload


def file_of(data: bytes) -> File:
    file = SimDisk().open("frames", "create")
    file.append([data])
    return file


def payloads(data: bytes, begin: int = 0, salt: bytes = SALT) -> list[bytes]:
    return [frame.payload for frame in walk_frames(file_of(data), begin, len(data), salt)]


def with_bit_flipped(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


@given(
    st.one_of(st.binary(max_size=200), st.integers(0, 3000).map(bytes)),
    NUMBERS,
    NUMBERS,
    st.integers(0, 2**32 - 1),
    st.binary(min_size=SALT_BYTES, max_size=SALT_BYTES),
    st.binary(max_size=40),
)
def test_round_trip(
    payload: bytes, base_offset: int, watermark: int, flags: int, salt: bytes, before: bytes
) -> None:
    """A frame is read back from any position in the file."""
    data = before + framed(payload, base_offset, watermark, flags, salt)
    (frame,) = walk_frames(file_of(data), len(before), len(data), salt)
    assert frame == Frame(len(before), len(data), base_offset, watermark, flags, payload)


@pytest.mark.parametrize("length", [0, 1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 200])
def test_every_flipped_bit_in_header_and_head_is_detected(length: int) -> None:
    """A damaged length is no torn tail, a damaged number no other number."""
    data = framed(PAYLOAD[:length])
    for bit in range(8 * (FRAME_HEADER.size + min(length, HEAD_BYTES))):
        damaged = with_bit_flipped(data, bit)
        # Bytes after it, so that a larger length still finds enough bytes.
        assert parse_frame(damaged + bytes(10_000), 0, 0, SALT) == 0, f"bit {bit}"
        assert payloads(damaged) == [], f"bit {bit}"


def test_a_frame_parses_only_with_its_salt() -> None:
    """A frame of another file, or of an earlier use of the blocks, is refused."""
    data = framed(PAYLOAD)
    assert payloads(data) == [PAYLOAD]
    assert payloads(data, salt=OTHER_SALT) == []
    assert list(find_frames(data, 0, OTHER_SALT)) == []


@pytest.mark.parametrize("length", [10, HEAD_BYTES, 200])
def test_swapped_payloads_are_detected(length: int) -> None:
    first, second = b"a" * length, b"b" * length
    one, two = framed(first, 1), framed(second, 2)
    swapped = one[: FRAME_HEADER.size] + second + two[: FRAME_HEADER.size] + first
    assert payloads(one + two) == [first, second]
    assert payloads(swapped) == []
    assert list(find_frames(swapped, 0, SALT)) == []


def test_a_cut_anywhere_leaves_the_whole_frames_before_it() -> None:
    """Walking stops at the first frame that is not whole."""
    frames = [framed(PAYLOAD[:length], base_offset=length) for length in (0, 1, 64, 65, 200)]
    data = b"".join(frames)
    ends = [sum(map(len, frames[:count])) for count in range(len(frames) + 1)]
    for size in range(len(data) + 1):
        found = list(walk_frames(file_of(data[:size]), 0, size, SALT))
        assert [frame.end for frame in found] == [end for end in ends[1:] if end <= size]


def test_walking_stops_at_its_end() -> None:
    """Whole frames after `end` are not returned."""
    one = framed(PAYLOAD)
    file = file_of(one + one + one)
    assert len(list(walk_frames(file, 0, 2 * len(one), SALT))) == 2
    assert len(list(walk_frames(file, 0, 3 * len(one) - 1, SALT))) == 2
    assert len(list(walk_frames(file, len(one), 3 * len(one), SALT))) == 2
    assert list(walk_frames(file, 3 * len(one), 3 * len(one), SALT)) == []


def test_walking_past_the_end_of_the_file_stops() -> None:
    one = framed(PAYLOAD)
    assert len(list(walk_frames(file_of(one + one[:-1]), 0, 2 * len(one), SALT))) == 1


@pytest.mark.parametrize(
    "length", [CHUNK_BYTES - FRAME_HEADER.size, CHUNK_BYTES, 3 * CHUNK_BYTES + 1]
)
def test_frames_of_any_size_cross_read_chunks(length: int) -> None:
    """A frame may end at a chunk, cross one, or be larger than one."""
    large = PAYLOAD * (length // len(PAYLOAD)) + PAYLOAD[: length % len(PAYLOAD)]
    data = framed(PAYLOAD) + framed(large) + framed(PAYLOAD)
    assert payloads(data) == [PAYLOAD, large, PAYLOAD]
    found = list(walk_frames(file_of(data), 0, len(data), SALT))
    assert all(before.end == after.position for before, after in pairwise(found))


class Counting:
    """A file that only says how much was asked of it."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.asked: list[int] = []

    def read(self, position: int, length: int) -> bytes:
        self.asked.append(length)
        return self._file.read(position, length)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def test_a_length_above_the_maximum_is_damage() -> None:
    """A header that claims more than the largest payload is damage, whatever its checksum says,
    and one that fails its checksum never makes the reader ask for what it claims."""
    unchecked = struct.pack("<4sIQQI", FRAME_MAGIC, PAYLOAD_BYTES_MAX + 1, 0, 0, 0)
    header = unchecked + struct.pack("<I", crc32c(unchecked + SALT + bytes(HEAD_BYTES)))
    assert parse_frame(header + bytes(HEAD_BYTES), 0, 0, SALT) == 0

    lying = struct.pack("<4sIQQII", FRAME_MAGIC, PAYLOAD_BYTES_MAX, 0, 0, 0, 0)
    file = Counting(file_of(lying + bytes(1000)))
    assert list(walk_frames(file, 0, 2**40, SALT)) == []  # type: ignore[arg-type]
    assert file.asked == [CHUNK_BYTES]


def test_the_writer_refuses_what_the_reader_refuses() -> None:
    """A payload above the limit, or a head that is not the start of the payload."""
    with pytest.raises(AssertionError):
        frame_header(bytes(HEAD_BYTES), PAYLOAD_BYTES_MAX + 1, 0, 0, 0, SALT)
    with pytest.raises(AssertionError):
        frame_header(bytes(HEAD_BYTES - 1), HEAD_BYTES, 0, 0, 0, SALT)


@given(st.binary(max_size=300), st.integers(0, 3))
def test_random_bytes_are_no_frame(data: bytes, cut: int) -> None:
    """Random bytes, also after the magic, and zeros."""
    for hostile in (data, FRAME_MAGIC + data, bytes(len(data)), FRAME_MAGIC[:cut]):
        assert payloads(hostile) == []
        assert list(find_frames(hostile, 0, SALT)) == []


def test_find_frames_finds_every_header_after_damage() -> None:
    """At any distance and alignment, even if payloads are cut off."""
    parts = [
        b"\xff" * 13,
        framed(PAYLOAD, 7, 5),
        FRAME_MAGIC,
        FRAME_MAGIC,
        framed(b"", 8, 6),
        b"FRZ",
    ]
    cut = framed(PAYLOAD, 9, 8)[: FRAME_HEADER.size + HEAD_BYTES]
    data = b"".join(parts) + cut
    assert list(find_frames(data, 1000, SALT)) == [
        (1013, 7, 5),
        (1000 + len(b"".join(parts[:4])), 8, 6),
        (1000 + len(b"".join(parts)), 9, 8),
    ]


def test_find_frames_ignores_a_cut_header() -> None:
    """A header whose checked bytes are cut cannot be verified."""
    whole = framed(PAYLOAD)[: FRAME_HEADER.size + HEAD_BYTES]
    assert len(list(find_frames(whole, 0, SALT))) == 1
    for size in range(len(whole)):
        assert list(find_frames(whole[:size], 0, SALT)) == []
