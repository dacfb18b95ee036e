"""Segments: a file identifies its partition, and its frames are contiguous."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.disk import HEAD_BYTES, frame_header
from frazil.errors import Corrupt
from frazil.log import Record, encode_batch
from frazil.log.segment import (
    HEADER_BYTES,
    SEARCH_BYTES,
    LogSegment,
    SegmentHeader,
    acknowledged_after,
    base_offsets,
    decode_segment_header,
    identity_of,
    segment_name,
    side_name,
    walk_batches,
)
from frazil.model import Rand
from tests.log.build import flipped
from tests.sim.disk import Faults, Model, PowerCut, SimDisk

SALT = b"saltsalt"
HEADER = SegmentHeader(identity=identity_of("t", 0), salt=SALT, base_offset=100, created_ms=5)
REWRITTEN = SegmentHeader(
    identity=1, salt=SALT, base_offset=100, created_ms=5, is_rewritten=True, sealed_end_offset=200
)


def frame(base_offset: int, *, count: int = 1, watermark: int = 100, salt: bytes = SALT) -> bytes:
    """A frame with a batch of `count` records."""
    offsets = range(base_offset, base_offset + count)
    records = [Record(offset=o, timestamp_ms=o, key=None, value=b"v") for o in offsets]
    return framed(encode_batch(records, base_offset=base_offset), base_offset, watermark, salt)


def framed(payload: bytes, base_offset: int, watermark: int = 100, salt: bytes = SALT) -> bytes:
    head = payload[:HEAD_BYTES]
    return frame_header(head, len(payload), base_offset, watermark, 0, salt) + payload


def walked(header: SegmentHeader, *frames: bytes) -> list[int]:
    """The base offsets of the batches that are found."""
    disk = SimDisk()
    file = disk.open("segment", "create")
    file.append([header.encode(), *frames])
    begin, offset = HEADER_BYTES, header.base_offset
    return [b.base_offset for b in walk_batches(file, header, begin, file.size(), offset)]


@given(
    st.integers(0, 2**32 - 1),
    st.binary(min_size=8, max_size=8),
    st.integers(0, 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
)
def test_header_round_trip(
    identity: int, salt: bytes, offset: int, time_ms: int, is_rewritten: bool
) -> None:
    header = SegmentHeader(
        identity=identity,
        salt=salt,
        base_offset=offset,
        created_ms=time_ms,
        is_rewritten=is_rewritten,
        sealed_end_offset=offset,
        sealed_bytes=offset,
    )
    assert len(header.encode()) == HEADER_BYTES
    assert decode_segment_header(header.encode() + b"frames", "path") == header


def test_every_damaged_header_is_refused() -> None:
    """Every flipped bit and every cut."""
    whole = HEADER.encode()
    damaged = [flipped(whole, bit) for bit in range(8 * len(whole))]
    damaged += [whole[:size] for size in range(len(whole))]
    for data in damaged:
        with pytest.raises(Corrupt) as caught:
            decode_segment_header(data, "log/t/0/x.log")
        assert (caught.value.path, caught.value.position) == ("log/t/0/x.log", 0)


def test_identity_differs_between_partitions() -> None:
    """Also if topic and partition run together."""
    places = [("t", 0), ("t", 1), ("t1", 0), ("t", 10), ("t/1", 0)]
    assert len({identity_of(*place) for place in places}) == len(places)


def test_names_sort_by_offset_and_foreign_names_are_ignored() -> None:
    names = sorted(segment_name(offset) for offset in (2**63 - 1, 0, 9, 10))
    assert base_offsets(names, ".log") == [0, 9, 10, 2**63 - 1]
    assert base_offsets([side_name(7, ".index")], ".index") == [7]
    strangers = ["7.log", "copy.log", "x" * 20 + ".log", segment_name(7) + ".cleaned", "marks", ""]
    strangers += [segment_name(7) + ".bak", "0" + segment_name(7), "\u0661" * 20 + ".log"]
    assert base_offsets([*strangers, side_name(7, ".index")], ".log") == []


def test_batches_are_contiguous() -> None:
    assert walked(HEADER, frame(100, count=3), frame(103), frame(104)) == [100, 103, 104]


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ([frame(101)], []),
        ([frame(99)], []),
        ([frame(100), frame(100)], [100]),
        ([frame(100), frame(102)], [100]),
        ([frame(100, count=2), frame(101)], [100]),
        ([frame(100), frame(101, salt=b"tlastlas")], [100]),
        ([frame(100, watermark=100), frame(101, watermark=99)], [100]),
        ([frame(100), framed(b"no batch", 101)], [100]),
        ([frame(100), framed(b"", 101)], [100]),
        ([frame(100), framed(frame(102)[32:], 101)], [100]),
        ([frame(100), flipped(frame(101), 8 * (len(frame(101)) - 1))], [100]),
    ],
)
def test_the_walk_stops_at_an_unexpected_batch(frames: list[bytes], found: list[int]) -> None:
    """A gap, a repetition, an overlap, a frame of another file or of an undone group, no batch."""
    assert walked(HEADER, *frames, frame(found[-1] + 1 if found else 100)) == found


def test_a_rewritten_segment_has_gaps_and_no_overlaps() -> None:
    assert walked(REWRITTEN, frame(105), frame(150, count=2), frame(152)) == [105, 150, 152]
    assert walked(REWRITTEN, frame(105), frame(104)) == [105]
    assert walked(REWRITTEN, frame(99)) == []


@pytest.mark.parametrize("distance", [0, 1, 95, 4096])
def test_a_durable_watermark_after_damage_is_found(distance: int) -> None:
    """The highest one of the frames after the position."""
    disk = SimDisk()
    file = disk.open("segment", "create")
    file.append([HEADER.encode(), frame(100, watermark=999)])
    begin = file.size()
    file.append([b"\xff" * distance, frame(102, watermark=101), frame(103, watermark=102)])
    assert acknowledged_after(file, HEADER, begin, file.size()) == 102
    assert acknowledged_after(file, HEADER, begin, begin + distance) == 0
    assert acknowledged_after(file, HEADER, file.size(), file.size()) == 0


def test_a_durable_watermark_is_found_across_read_chunks() -> None:
    later = frame(102, watermark=101)
    for before in range(SEARCH_BYTES - 130, SEARCH_BYTES + 2, 13):
        disk = SimDisk()
        file = disk.open("segment", "create")
        file.append([bytes(before), later])
        assert acknowledged_after(file, HEADER, 0, file.size()) == 101, before


def create(disk: SimDisk) -> LogSegment:
    return LogSegment.create(disk, "p", HEADER, 100)


def folder(model: Model = "ext4") -> SimDisk:
    disk = SimDisk(model=model)
    disk.make_directory("p")
    disk.sync_directory("")
    return disk


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_created_segment_is_durable(model: Model) -> None:
    """Before that, no file or a torn header."""
    for seed in range(20):
        disk = folder(model)
        create(disk)
        assert disk.crash(Rand(seed)).data(f"p/{segment_name(100)}") == HEADER.encode()
    for call in range(1, 5):
        disk = folder(model)
        disk.faults = Faults(crash_at=disk.calls + call)
        with pytest.raises(PowerCut):
            create(disk)
        for seed in range(20):
            after = disk.crash(Rand(seed))
            assert all(len(after.data(path)) <= HEADER_BYTES for path in after.files())


@pytest.mark.parametrize("call", [1, 2, 3, 4])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failed_creation_leaves_no_file(call: int, number: int) -> None:
    disk = folder()
    disk.faults = Faults(fail_at=(disk.calls + call, number))
    with pytest.raises(OSError):
        create(disk)
    assert disk.files() == []
    create(disk)


def test_truncate_is_durable() -> None:
    for seed in range(20):
        disk = folder("weak")
        segment = create(disk)
        segment.append([b"refused"], 7)
        segment.file.sync()
        segment.append([b"more"], 4)
        segment.truncate(HEADER_BYTES)
        assert segment.size_bytes == HEADER_BYTES
        assert disk.crash(Rand(seed)).data(segment.path) == HEADER.encode()
