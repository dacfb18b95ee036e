"""Record batches: round trips, and how hostile or damaged bytes fail."""

from __future__ import annotations

import contextlib
import re
import struct
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed, TooLarge
from frazil.log.format import batch as batch_module
from frazil.log.format.batch import (
    APPEND_TIME,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    NO_PRODUCER,
    NO_SEQUENCE,
    BatchHeader,
    check_batch,
    encode_batch,
    parse_header,
    read_records,
    with_base_offset,
    with_max_timestamp,
)
from frazil.log.format.compression import Compression, compress
from frazil.log.format.record import Record
from frazil.log.produce import validate_produced

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "record-batch.md"
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
NOW_MS = 1_700_000_000_000

ATTRIBUTES = (21, ">h")
LAST_OFFSET_DELTA = (23, ">i")
BASE_TIMESTAMP = (27, ">q")
MAX_TIMESTAMP = (35, ">q")
PRODUCER_ID = (43, ">q")
PRODUCER_EPOCH = (51, ">h")
BASE_SEQUENCE = (53, ">i")
RECORD_COUNT = (57, ">i")


def record(offset: int = 0, value: bytes | None = b"v", timestamp_ms: int = NOW_MS) -> Record:
    return Record(offset=offset, timestamp_ms=timestamp_ms, key=b"k", value=value)


def sealed(data: bytes) -> bytes:
    """The same bytes with length and CRC put right, so that only the deeper checks can object."""
    front = data[:8] + struct.pack(">i", len(data) - 12) + data[12:17]
    return front + struct.pack(">I", crc32c(data[21:])) + data[21:]


def altered(data: bytes, field: tuple[int, str], value: int) -> bytes:
    """A batch with another value in one header field, and a CRC that agrees."""
    changed = bytearray(data)
    struct.pack_into(field[1], changed, field[0], value)
    return sealed(bytes(changed))


def with_body(body: bytes, count: int = 1, attributes: int = 0) -> bytes:
    """A batch around any bytes at all."""
    data = altered(encode_batch([record(i) for i in range(count)]), ATTRIBUTES, attributes)
    return sealed(data[:HEADER_BYTES] + body)


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
contents = st.none() | st.binary(max_size=40)


@st.composite
def record_lists(draw: st.DrawFn, *, gaps: bool = False) -> list[Record]:
    """Records with rising offsets, without gaps unless compaction is meant."""
    offset = draw(st.integers(0, 2**40)) if gaps else 0
    records = []
    for _ in range(draw(st.integers(1, 8))):
        records.append(
            Record(
                offset=offset,
                timestamp_ms=draw(st.integers(0, 2**60)),
                key=draw(contents),
                value=draw(contents),
                headers=tuple(draw(st.lists(st.tuples(names, contents), max_size=3))),
            )
        )
        offset += draw(st.integers(1, 1000)) if gaps else 1
    return records


@given(records=record_lists(gaps=True), compression=st.sampled_from(Compression))
def test_round_trip(records: list[Record], compression: Compression) -> None:
    """For each compression, with gaps as left by compaction."""
    base = records[0].offset
    data = encode_batch(records, base_offset=base, compression=compression)
    header = check_batch(data)
    assert read_records(data) == records
    assert header.compression is compression
    assert (header.base_offset, header.end_offset) == (base, records[-1].offset + 1)
    assert header.base_timestamp_ms == records[0].timestamp_ms
    assert header.max_timestamp_ms == max(r.timestamp_ms for r in records)
    assert (header.record_count, header.size_bytes) == (len(records), len(data))


@given(records=record_lists(), compression=st.sampled_from(Compression))
def test_our_batches_pass_the_check_for_clients(
    records: list[Record], compression: Compression
) -> None:
    data = encode_batch(records, compression=compression)
    assert validate_produced(data)[:2] == (check_batch(data), data)


@given(
    producer_id=st.integers(0, INT64_MAX),
    epoch=st.integers(0, 2**15 - 1),
    sequence=st.integers(0, INT32_MAX),
    base_offset=st.integers(0, 2**62),
    transactional=st.booleans(),
)
def test_header_round_trip(
    producer_id: int, epoch: int, sequence: int, base_offset: int, transactional: bool
) -> None:
    data = encode_batch(
        [record(base_offset), record(base_offset + 1)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
        leader_epoch=3,
    )
    header = check_batch(data)
    assert header.has_producer and header.producer_id == producer_id
    assert (header.producer_epoch, header.base_sequence) == (epoch, sequence)
    assert (header.base_offset, header.leader_epoch) == (base_offset, 3)
    assert header.is_transactional is transactional
    assert not header.is_control and not header.uses_append_time
    assert header.delete_horizon_ms is None


def test_large_values_and_many_records_round_trip() -> None:
    """Varints of several bytes and offsets far from the base."""
    values = [b"", b"x", b"y" * 63, b"y" * 64, b"z" * 300_000]
    records = [record(i * 100_000_000, value) for i, value in enumerate(values)]
    assert read_records(encode_batch(records)) == records
    many = [record(i, b"%d" % i, NOW_MS - i) for i in range(3000)]
    assert read_records(encode_batch(many, compression=Compression.ZSTD)) == many


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_without_records_keeps_its_offsets(compression: Compression) -> None:
    """Compaction may remove every record."""
    data = encode_batch(
        [],
        base_offset=100,
        last_offset_delta=9,
        max_timestamp_ms=NOW_MS,
        compression=compression,
        producer_id=7,
        producer_epoch=1,
        base_sequence=40,
    )
    header = check_batch(data)
    assert len(data) == HEADER_BYTES and read_records(data) == []
    assert header.compression is Compression.NONE
    assert (header.base_offset, header.end_offset, header.record_count) == (100, 110, 0)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (-1, NOW_MS)
    assert header.last_sequence == 49
    marked = altered(data, ATTRIBUTES, compression)
    assert check_batch(marked).record_count == 0 and read_records(marked) == []
    with pytest.raises(Malformed):
        encode_batch([])


def test_compaction_may_remove_the_first_and_the_last_record() -> None:
    """The stated last offset delta counts."""
    records = [record(101), record(104)]
    data = encode_batch(records, base_offset=100, last_offset_delta=9)
    assert read_records(data) == records
    assert check_batch(data).end_offset == 110
    with pytest.raises(Malformed):
        encode_batch(records, base_offset=100, last_offset_delta=3)


def test_append_time_applies_to_every_record() -> None:
    records = [record(0), record(1)]
    expected = [replace(r, timestamp_ms=5) for r in records]
    for data in (
        encode_batch(records, max_timestamp_ms=5, append_time=True),
        with_max_timestamp(encode_batch(records), 5, append_time=True),
    ):
        assert check_batch(data).uses_append_time
        assert read_records(data) == expected


def test_a_delete_horizon_keeps_the_times_of_records() -> None:
    """The horizon replaces the base timestamp."""
    records = [record(0, None), record(1, None, NOW_MS + 3)]
    data = encode_batch(records, delete_horizon_ms=NOW_MS + 86_400_000)
    assert check_batch(data).delete_horizon_ms == NOW_MS + 86_400_000
    assert read_records(data) == records


def test_control_batches_are_marked() -> None:
    marker = replace(record(), key=struct.pack(">hh", 0, 1))
    data = encode_batch([marker], control=True, transactional=True, producer_id=1)
    assert check_batch(data).is_control and read_records(data) == [marker]


@pytest.mark.parametrize(
    ("base_sequence", "count", "expected"),
    [
        (0, 1, 0),
        (5, 3, 7),
        (INT32_MAX, 1, INT32_MAX),
        (INT32_MAX, 2, 0),
        (INT32_MAX - 1, 5, 2),
        (NO_SEQUENCE, 3, NO_SEQUENCE),
    ],
)
def test_sequences_wrap(base_sequence: int, count: int, expected: int) -> None:
    data = encode_batch([record(i) for i in range(count)], base_sequence=base_sequence)
    assert check_batch(data).last_sequence == expected


def test_assigning_an_offset_keeps_the_batch_valid() -> None:
    """The CRC does not change."""
    data = encode_batch([record(0), record(1)], compression=Compression.LZ4)
    moved = with_base_offset(data, 2**40, leader_epoch=6)
    header = check_batch(moved)
    assert (header.base_offset, header.leader_epoch) == (2**40, 6)
    assert header.crc == check_batch(data).crc
    assert [r.offset for r in read_records(moved)] == [2**40, 2**40 + 1]
    assert with_base_offset(moved, 0) == data


def test_headers_can_be_parsed_at_any_position() -> None:
    first, second = encode_batch([record()]), encode_batch([record(), record(1)])
    both = first + second
    assert parse_header(both) == check_batch(first)
    assert parse_header(both, len(first)) == check_batch(second)
    for position in (-1, len(both) - HEADER_BYTES + 1, len(both) + 5):
        with pytest.raises(Malformed):
            parse_header(both, position)


@pytest.mark.parametrize("compression", Compression)
def test_every_flipped_bit_is_detected(compression: Compression) -> None:
    """Of the bytes that the CRC covers, and of the CRC."""
    data = encode_batch([record(0), record(1)], compression=compression)
    for position in range(17, len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(Malformed):
                check_batch(bytes(damaged))


@pytest.mark.parametrize("compression", Compression)
def test_every_truncation_is_malformed(compression: Compression) -> None:
    """Also one byte too many, for each decoder."""
    data = encode_batch([record(0), record(1)], compression=compression)
    for broken in [data[:length] for length in range(len(data))] + [data + b"\0"]:
        for read in (check_batch, read_records, validate_produced):
            with pytest.raises(Malformed):
                read(broken)


@pytest.mark.parametrize("by_bytes", [-1, 1])
def test_a_wrong_length_is_malformed(by_bytes: int) -> None:
    """The CRC does not cover the batch length."""
    data = bytearray(encode_batch([record()]))
    struct.pack_into(">i", data, 8, len(data) - 12 + by_bytes)
    for read in (check_batch, read_records, validate_produced):
        with pytest.raises(Malformed):
            read(bytes(data))


def test_truncated_records_with_a_valid_crc_are_malformed() -> None:
    full = Record(
        offset=0, timestamp_ms=NOW_MS, key=b"k" * 70, value=b"v", headers=(("n", b"c"), ("m", None))
    )
    body = encode_batch([full])[HEADER_BYTES:]
    for length in range(len(body)):
        with pytest.raises(Malformed):
            read_records(with_body(body[:length]))
        with pytest.raises(Malformed):
            read_records(with_body(body + body[:length], count=2))


@given(st.binary(max_size=300))
def test_garbage_is_refused(data: bytes) -> None:
    """Random bytes raise only our errors."""
    for read in (parse_header, check_batch, read_records, validate_produced):
        with contextlib.suppress(Malformed, TooLarge):
            read(data)


@given(
    body=st.binary(max_size=120),
    count=st.integers(1, 20),
    compression=st.sampled_from(Compression),
    packed=st.booleans(),
)
def test_garbage_records_are_refused(
    body: bytes, count: int, compression: Compression, packed: bool
) -> None:
    """Random bytes after a valid header and CRC raise only our errors."""
    if packed:
        body = compress(compression, body)
    data = with_body(body, count, compression)
    for read in (read_records, validate_produced):
        with contextlib.suppress(Malformed, TooLarge):
            read(data)


@given(st.data())
def test_damaged_records_are_refused_or_read(data: st.DataObject) -> None:
    """Near misses of real records reach every branch and raise only our errors."""
    body = bytearray(encode_batch([record(0), record(1)])[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Malformed):
        assert len(read_records(with_body(bytes(body), 2))) == 2


def varint(number: int) -> bytes:
    """Plain base-128 of an already zigzag-coded number."""
    encoded = b""
    while number > 0x7F:
        encoded, number = encoded + bytes((number & 0x7F | 0x80,)), number >> 7
    return encoded + bytes((number,))


ONE = b"\x0c\0\0\0\x01\x01\0"
"""The smallest record: six bytes after its length, nulls and no headers."""


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("record length of -1", b"\x01" + ONE[1:]),
        ("record length past the end", b"\x7e" + ONE[1:]),
        ("record length too short", b"\x0a" + ONE[1:]),
        ("record length too long", b"\x0e" + ONE[1:]),
        ("record length of 6 bytes", b"\x8c\x80\x80\x80\x80\0" + ONE[1:]),
        ("record length over 32 bits", varint(2**32 + 12) + ONE[1:]),
        ("varint without end", b"\xff" * 20),
        ("varlong of 11 bytes", b"\x20\0" + b"\x80" * 10 + b"\0\0\x01\x01\0"),
        ("timestamp over 64 bits", b"\x1e\0" + varint(2**64 + 1) + b"\0\x01\x01\0"),
        ("timestamp out of range", b"\x1e\0" + varint(2**64 - 2) + b"\0\x01\x01\0"),
        ("offset of -1", b"\x0c\0\0\x01\x01\x01\0"),
        ("offset past the last", b"\x0c\0\0\x02\x01\x01\0"),
        ("key length of -2", b"\x0c\0\0\0\x03\x01\0"),
        ("key past the end", b"\x0c\0\0\0\x7e\x01\0"),
        ("value length of -2", b"\x0c\0\0\0\x01\x03\0"),
        ("value past the end", b"\x0c\0\0\0\x01\x06\0"),
        ("header count of -1", b"\x0c\0\0\0\x01\x01\x01"),
        ("header count over the rest", b"\x0c\0\0\0\x01\x01\x02"),
        ("header without name", b"\x10\0\0\0\x01\x01\x02\x01\x01"),
        ("header name not UTF-8", b"\x12\0\0\0\x01\x01\x02\x02\xff\x01"),
        ("a byte after the last record", ONE + b"\0"),
        ("one record too many", ONE + ONE),
        ("no record at all", b""),
    ],
)
def test_broken_records_are_malformed(name: str, body: bytes) -> None:
    """Each field of a record is checked."""
    assert len(read_records(with_body(ONE))) == 1
    for read in (read_records, validate_produced):
        with pytest.raises(Malformed):
            read(with_body(body))


def test_records_do_not_overlap_or_repeat() -> None:
    second = b"\x0c\0\0\x02\x01\x01\0"
    assert len(read_records(with_body(ONE + second, count=2))) == 2
    for body in (b"\x0e" + ONE[1:] + second, ONE + ONE, second + ONE):
        with pytest.raises(Malformed):
            read_records(with_body(body, count=2))


def test_wide_varints_are_read() -> None:
    """A varint with more bytes than needed, but within its width."""
    assert len(read_records(with_body(b"\x8c\x80\x80\x80\0" + ONE[1:]))) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (ATTRIBUTES, 5),
        (ATTRIBUTES, 7),
        (ATTRIBUTES, 0x80),
        (ATTRIBUTES, -1),
        (LAST_OFFSET_DELTA, -1),
        (LAST_OFFSET_DELTA, 0),
        (RECORD_COUNT, -1),
        (RECORD_COUNT, 3),
        (RECORD_COUNT, INT32_MAX),
        ((0, ">q"), -1),
        ((0, ">q"), INT64_MAX),
        ((8, ">i"), 0),
        ((8, ">i"), -1),
        ((8, ">i"), HEADER_BYTES - 13),
        ((16, ">b"), 0),
        ((16, ">b"), 1),
        ((16, ">b"), 3),
    ],
)
def test_impossible_headers_are_malformed(field: tuple[int, str], value: int) -> None:
    data = bytearray(encode_batch([record(0), record(1)]))
    struct.pack_into(field[1], data, field[0], value)
    with pytest.raises(Malformed):
        parse_header(bytes(data))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ((0, ">q"), 5),
        (ATTRIBUTES, APPEND_TIME),
        (ATTRIBUTES, CONTROL),
        (ATTRIBUTES, DELETE_HORIZON),
        (ATTRIBUTES, 0x10),
        (LAST_OFFSET_DELTA, 2),
        (RECORD_COUNT, 1),
        (RECORD_COUNT, 0),
        (PRODUCER_ID, -2),
        (PRODUCER_ID, 4),
        (BASE_TIMESTAMP, -2),
        (BASE_TIMESTAMP, -(2**63)),
    ],
)
def test_batches_that_clients_may_not_send_are_refused(field: tuple[int, str], value: int) -> None:
    """Valid bytes that only the log may write, or that contradict themselves."""
    data = altered(encode_batch([record(0), record(1)]), field, value)
    assert isinstance(check_batch(data), BatchHeader)
    with pytest.raises(Malformed):
        validate_produced(data)


def test_a_producer_needs_epoch_and_sequence() -> None:
    data = encode_batch([record()], producer_id=4, producer_epoch=0, base_sequence=0)
    assert validate_produced(data)[0].has_producer
    for field in (PRODUCER_EPOCH, BASE_SEQUENCE):
        with pytest.raises(Malformed):
            validate_produced(altered(data, field, -1))
    header = validate_produced(altered(data, PRODUCER_ID, NO_PRODUCER)).header
    assert not header.has_producer


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("stated_ms", [-1, 0, NOW_MS + 1, INT64_MAX, -(2**63)])
def test_a_wrong_max_timestamp_is_corrected(compression: Compression, stated_ms: int) -> None:
    """Retention relies on it, and some clients send none."""
    records = [record(0, timestamp_ms=NOW_MS), record(1, timestamp_ms=NOW_MS - 5)]
    data = encode_batch(records, compression=compression)
    header, kept, _ = validate_produced(altered(data, MAX_TIMESTAMP, stated_ms))
    assert kept == data
    assert header == check_batch(data)


@pytest.mark.parametrize("compression", list(Compression)[1:])
def test_a_batch_that_decompresses_above_the_cap_is_too_large(compression: Compression) -> None:
    data = encode_batch([record(0, bytes(3_000_000))], compression=compression)
    assert read_records(data)[0].value == bytes(3_000_000)
    for read in (read_records, validate_produced):
        with pytest.raises(TooLarge):
            read(data, bytes_max=1_000_000)


def test_too_many_records_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By writer and reader."""
    data = encode_batch([record(i) for i in range(11)])
    monkeypatch.setattr(batch_module, "RECORD_COUNT_MAX", 10)
    for refused in (read_records, validate_produced):
        with pytest.raises(TooLarge):
            refused(data)
    with pytest.raises(TooLarge):
        encode_batch([record(i) for i in range(11)])
    assert len(read_records(encode_batch([record(i) for i in range(10)]))) == 10


@pytest.mark.parametrize(
    "records",
    [
        [record(1), record(1)],
        [record(1), record(0)],
        [record(-1)],
        [record(2**31)],
        [record(timestamp_ms=2**63)],
        [record(timestamp_ms=-(2**63))],
        [record(0, timestamp_ms=-(2**62)), record(1, timestamp_ms=2**63 - 1)],
        [replace(record(), headers=(("\ud800", b""),))],
    ],
)
def test_records_that_no_batch_can_hold_are_refused(records: list[Record]) -> None:
    with pytest.raises(Malformed):
        encode_batch(records)


def test_fields_that_no_header_can_hold_are_refused() -> None:
    wide = partial(encode_batch, [record()])
    for refused in (
        partial(wide, producer_id=2**63),
        partial(wide, producer_epoch=2**15),
        partial(wide, base_sequence=2**31),
        partial(wide, max_timestamp_ms=2**63),
        partial(wide, leader_epoch=2**31),
    ):
        with pytest.raises(Malformed, match="out of range"):
            refused()
    with pytest.raises(Malformed):
        encode_batch([record(INT64_MAX)], base_offset=INT64_MAX)


def test_the_example_in_the_docs_decodes_as_stated() -> None:
    found = re.search(r"```record-batch\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    lines = [line.split("#") for line in found[1].splitlines()]
    data = bytes.fromhex("".join(code for code, _ in lines))
    header = check_batch(data)
    stated = dict(note.split("=") for _, note in lines if "=" in note)
    facts = {name.strip(): int(number) for name, number in stated.items()}
    assert facts.pop("magic") == 2
    assert facts == header._asdict()

    records = read_records(data)
    assert records == [
        Record(
            offset=42,
            timestamp_ms=NOW_MS,
            key=b"k1",
            value=b"hello",
            headers=(("trace", b"\x01"),),
        ),
        Record(offset=43, timestamp_ms=NOW_MS + 7, key=None, value=None),
    ]
    again = encode_batch(records, base_offset=42, producer_id=9, producer_epoch=0, base_sequence=5)
    assert again == data
