"""A segment gives back what was put in, or says that it cannot."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frazil.disk import WriteBuffer
from frazil.errors import Corrupt
from frazil.hot.segment.arrow_segment import (
    ArrowSegment,
    fingerprint_of,
    open_segment,
    write_segment,
)
from frazil.hot.segment.column_stats import SERVICES_MAX, ColumnStats, stats_of
from frazil.hot.segment.layout import (
    HEADER_BYTES,
    TRAILER_BYTES,
    ArrowSegmentHeader,
    decode_footer,
    decode_trailer,
    encode_end,
)
from frazil.model import Rand
from tests.hot.build import LINES, batch_of, lines
from tests.sim.disk import Faults, Model, PowerCut, SimDisk

PATH = "00000000000000000007.arrow"
HEADER = ArrowSegmentHeader(identity=1, begin_offset=7, end_offset=60, created_ms=1_700_000_000_000)
Slots = Mapping[str, Sequence[pa.RecordBatch]]


def slots() -> dict[str, list[pa.RecordBatch]]:
    return {
        "logs": [batch_of(*lines(7, 30), offset=7), batch_of(*lines(30, 60), offset=30)],
        "dead_letters": [batch_of(b"a b c", offset=9)],
    }


def written(rows: Slots, disk: SimDisk | None = None) -> tuple[SimDisk, ArrowSegment]:
    disk = disk or SimDisk()
    return disk, write_segment(disk, PATH, HEADER, rows, WriteBuffer())


def rows_of(segment: ArrowSegment) -> dict[str, list[dict[str, object]]]:
    rows: dict[str, list[dict[str, object]]] = {}
    for stream in segment.streams:
        for batch in stream.batches:
            rows.setdefault(stream.slot, []).extend(batch.to_pylist())
    return rows


def wanted(rows: Slots) -> dict[str, list[dict[str, object]]]:
    return {slot: [row for b in batches for row in b.to_pylist()] for slot, batches in rows.items()}


def test_segments_round_trip() -> None:
    """All tables and rows, in order, with statistics; no temporary file is left."""
    disk, made = written(slots())
    found = open_segment(disk, PATH)
    assert disk.files() == [PATH]
    for segment in (made, found):
        assert segment.path == PATH and segment.header == HEADER
        assert rows_of(segment) == wanted(slots())
        logs, letters = segment.streams
        assert (logs.slot, logs.row_count, letters.slot, letters.row_count) == (
            "logs",
            106,
            "dead_letters",
            1,
        )
        assert logs.batches[0].schema.equals(LINES, check_metadata=True)
        assert logs.services == frozenset({"service-0", "service-1", "service-2"})
        assert logs.columns["time"] == ColumnStats("time", 0, 1_007_000, 1_059_000)
        assert list(logs.columns) == ["time"]
        assert logs.filters["trace_id"].may_hold(f"{59:032x}")
        assert not logs.filters["trace_id"].may_hold(f"{60:032x}")
        assert [
            (e.stream, e.row_count, e.begin_offset, e.end_offset) for e in segment.manifest
        ] == [
            (0, 46, 7, 30),
            (0, 60, 30, 60),
            (1, 1, 9, 10),
        ]


def test_a_segment_may_be_empty() -> None:
    """Offsets without rows are covered as well."""
    disk, segment = written({"logs": [], "dead_letters": [batch_of()]})
    assert segment.streams == () and open_segment(disk, PATH).end_offset == 60


def test_batches_of_a_table_may_differ_in_schema() -> None:
    """Each schema gets its own stream."""
    old = batch_of(*lines(7, 9), offset=7).drop_columns(["trace_id"])
    new = batch_of(*lines(9, 12), offset=9)
    newest = new.append_column("extra", pa.array(range(len(new))))
    _, segment = written({"logs": [old, new, old, newest]})
    assert [(s.slot, s.row_count) for s in segment.streams] == [
        ("logs", 8),
        ("logs", 6),
        ("logs", 6),
    ]
    assert [s.fingerprint for s in segment.streams] == [
        fingerprint_of(b.schema) for b in (old, new, newest)
    ]
    assert len({s.fingerprint for s in segment.streams}) == 3
    assert rows_of(segment)["logs"] == [r for b in (old, old, new, newest) for r in b.to_pylist()]
    assert "trace_id" not in segment.streams[0].filters


def test_batches_may_differ_in_dictionaries() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [
        batch_of(*lines(7, 9), offset=7).append_column("w", pa.array(list(words)).cast(kind))
        for words in ("abab", "cbcb")
    ]
    _, segment = written({"logs": batches})
    (stream,) = segment.streams
    assert [batch["w"].to_pylist() for batch in stream.batches] == [list("abab"), list("cbcb")]


def test_bounds_of_times() -> None:
    for values, expected in (([7, None, 5], (1, 5, 7)), ([None], (1, None, None))):
        facts = stats_of("c", pa.chunked_array([pa.array(values, pa.timestamp("us", tz="UTC"))]))
        assert (facts.null_count, facts.lower, facts.upper) == expected


def test_too_many_services_are_not_listed() -> None:
    bodies = [f"service-{n} t b".encode() for n in range(SERVICES_MAX + 1)]
    _, segment = written({"logs": [batch_of(*bodies)]})
    assert segment.streams[0].services is None
    _, segment = written({"logs": [batch_of(*bodies[1:])]})
    assert len(segment.streams[0].services or ()) == SERVICES_MAX
    _, segment = written({"logs": [batch_of(b"s" * 70_000 + b" t b")]})
    assert segment.streams[0].services is None


def assert_refused_or_same(disk: SimDisk, what: str) -> bool:
    """Was it refused? If not, not one row may differ."""
    try:
        segment = open_segment(disk, PATH)
    except Corrupt as error:
        assert error.path == PATH
        return True
    assert rows_of(segment) == wanted(small()), what
    return False


def small() -> dict[str, list[pa.RecordBatch]]:
    return {"logs": [batch_of(*lines(7, 9), offset=7)]}


def test_every_flipped_byte_is_detected() -> None:
    disk, _ = written(small())
    file = disk.open(PATH, "edit")
    whole = disk.data(PATH)
    for position, byte in enumerate(whole):
        for mask in (1 << position % 8, 0xFF):
            file.write_at(position, bytes([byte ^ mask]))
            assert assert_refused_or_same(disk, f"byte {position} ^ {mask}"), position
        file.write_at(position, bytes([byte]))
    assert rows_of(open_segment(disk, PATH)) == wanted(small())


def test_a_truncated_or_extended_file_is_detected() -> None:
    disk, _ = written(small())
    whole = disk.data(PATH)
    sizes = {*range(0, len(whole), 13), *range(len(whole) - 2 * TRAILER_BYTES, len(whole))}
    for size in (*sorted(sizes), HEADER_BYTES, HEADER_BYTES + TRAILER_BYTES):
        disk.rot(PATH, Rand(0), "replace", data=whole[:size])
        assert assert_refused_or_same(disk, f"cut to {size}"), size
    for more in (b"\0", whole, whole[-TRAILER_BYTES:]):
        disk.rot(PATH, Rand(0), "replace", data=whole + more)
        assert assert_refused_or_same(disk, f"{len(more)} bytes more")


@pytest.mark.parametrize("kind", ["zero_page", "duplicate_page", "swap_page"])
def test_lost_and_swapped_pages_are_detected(kind: str) -> None:
    refused = 0
    for seed in range(60):
        disk, _ = written(small())
        write_segment(disk, "other", HEADER, slots(), WriteBuffer())
        if disk.rot(PATH, Rand(seed), kind, other="other"):  # type: ignore[arg-type]
            assert assert_refused_or_same(disk, f"{kind} {seed}")
            refused += 1
    assert refused > 20


def test_a_trailer_of_another_file_is_detected() -> None:
    disk, _ = written(small())
    other = ArrowSegmentHeader(identity=1, begin_offset=7, end_offset=61, created_ms=0)
    write_segment(disk, "other", other, small(), WriteBuffer())
    mixed = disk.data("other")[:HEADER_BYTES] + disk.data(PATH)[HEADER_BYTES:]
    disk.rot(PATH, Rand(0), "replace", data=mixed)
    with pytest.raises(Corrupt, match="another"):
        open_segment(disk, PATH)


def test_an_invalid_stream_with_valid_checksums_is_corrupt() -> None:
    """Or it is read as it is; no other error."""
    disk, _ = written(small())
    whole = disk.data(PATH)
    head = whole[:HEADER_BYTES]
    position, length, check = decode_trailer(whole[-TRAILER_BYTES:], len(whole), head, PATH)
    footer = decode_footer(whole[position : position + length], position, check, PATH)
    (stream,) = footer.streams
    end = stream.position + stream.length
    rand, refused = Rand(1), 0
    for _ in range(500):
        data = bytearray(whole[:position])
        data[rand.randrange(stream.position, end)] ^= 1 << rand.randrange(8)
        entry = replace(stream, check=crc32c(bytes(data[stream.position : end])))
        sealed = bytes(data) + encode_end(replace(footer, streams=[entry]), position, head)
        disk.rot(PATH, Rand(0), "replace", data=sealed)
        try:
            open_segment(disk, PATH)
        except Corrupt as error:
            assert error.path == PATH
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_crash_while_writing_leaves_a_complete_file_or_none(model: Model) -> None:
    """At every storage call."""
    calls = written(slots())[0].calls
    outcomes = set()
    for crash_at in range(1, calls + 1):
        for seed in range(12):
            disk = SimDisk(model=model, faults=Faults(crash_at=crash_at), rand=Rand(seed))
            with pytest.raises(PowerCut):
                written(slots(), disk)
            after = disk.crash(Rand(seed))
            if PATH in after.list(""):
                assert rows_of(open_segment(after, PATH)) == wanted(slots())
            outcomes.add(PATH in after.list(""))
    assert outcomes == {True, False}


def test_a_failed_write_can_be_retried() -> None:
    """No temporary file is in the way."""
    calls = written(slots())[0].calls
    for number in range(1, calls + 1):
        for code in (errno.EIO, errno.ENOSPC):
            disk = SimDisk(faults=Faults(fail_at=(number, code)))
            with pytest.raises(OSError) as caught:
                written(slots(), disk)
            assert caught.value.errno == code
            disk.faults = Faults()
            assert rows_of(written(slots(), disk)[1]) == wanted(slots())
            assert disk.files() == [PATH]


def test_a_failed_sync_is_not_repeated_on_the_same_file() -> None:
    """The retry writes all bytes again, so a later power cut loses nothing."""
    disk = SimDisk(faults=Faults(fail_sync_at=1))
    with pytest.raises(OSError):
        written(slots(), disk)
    written(slots(), disk)
    after = disk.crash(Rand(1))
    assert rows_of(open_segment(after, PATH)) == wanted(slots())


@given(st.binary(max_size=400))
def test_unrelated_bytes_are_corrupt(data: bytes) -> None:
    """The error has path and position."""
    disk = SimDisk()
    disk.open(PATH, "create").append([data])
    with pytest.raises(Corrupt):
        open_segment(disk, PATH)


def test_rows_are_not_copied_and_outlive_the_file() -> None:
    disk, segment = written(slots())
    disk.unlink(PATH)
    assert rows_of(segment) == wanted(slots())
