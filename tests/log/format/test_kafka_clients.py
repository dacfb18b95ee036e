"""Compatibility with kafka-python: it reads our batches, we read its batches."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.log.format.batch import (
    check_batch,
    encode_batch,
    read_records,
    with_base_offset,
    with_max_timestamp,
)
from frazil.log.format.compression import Compression
from frazil.log.format.record import Record
from frazil.log.produce import validate_produced
from tests.log.format.test_batch import record_lists

with warnings.catch_warnings():
    # It reads its own schemas by a function of the standard library that is on its way out.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import (  # type: ignore[import-untyped]
        DefaultRecordBatch,
        DefaultRecordBatchBuilder,
    )

every_compression = pytest.mark.parametrize(
    "compression", Compression, ids=lambda compression: compression.name.lower()
)


def built_by_kafka_python(
    records: list[Record],
    compression: Compression,
    *,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> bytes:
    builder = DefaultRecordBatchBuilder(2, int(compression), transactional, *producer, 2**30)
    for record in records:
        appended = builder.append(
            record.offset, record.timestamp_ms, record.key, record.value, list(record.headers)
        )
        assert appended is not None
    return bytes(builder.build())


def read_by_kafka_python(data: bytes) -> list[Record]:
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    return [
        Record(
            offset=record.offset,
            timestamp_ms=record.timestamp,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
        )
        for record in batch
    ]


def large_records() -> list[Record]:
    """Enough bytes, and repetitive enough, that each codec works in several blocks."""
    return [
        Record(
            offset=offset,
            timestamp_ms=1_700_000_000_000 + offset * 7 % 100,
            key=b"key-%d" % (offset % 10) if offset % 3 else None,
            value=b"%d," % offset * 100 if offset % 5 else None,
            headers=(("trace", b"%d" % offset), ("empty", b""), ("nothing", None))[: offset % 4],
        )
        for offset in range(500)
    ]


@every_compression
def test_kafka_python_reads_our_batches(compression: Compression) -> None:
    """At the offsets the log assigned."""
    records = large_records()
    data = encode_batch(records, compression=compression)
    assert DefaultRecordBatch(data).compression_type == compression
    assert read_by_kafka_python(data) == records
    moved = with_base_offset(data, 5000)
    assert read_by_kafka_python(moved) == read_records(moved)


@every_compression
def test_we_read_batches_of_kafka_python(compression: Compression) -> None:
    """The log accepts them unchanged."""
    records = large_records()
    data = built_by_kafka_python(records, compression)
    header, kept, _ = validate_produced(data)
    assert kept == data
    assert header.compression is compression
    assert read_records(data) == records


@given(records=record_lists(), compression=st.sampled_from(Compression))
def test_both_agree_on_any_records(records: list[Record], compression: Compression) -> None:
    assert read_by_kafka_python(encode_batch(records, compression=compression)) == records
    assert read_records(built_by_kafka_python(records, compression)) == records


@given(
    records=record_lists(),
    producer=st.tuples(
        st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)
    ),
    transactional=st.booleans(),
)
def test_uncompressed_bytes_are_equal(
    records: list[Record], producer: tuple[int, int, int], transactional: bool
) -> None:
    producer_id, producer_epoch, base_sequence = producer
    ours = encode_batch(
        records,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    theirs = built_by_kafka_python(
        records, Compression.NONE, producer=producer, transactional=transactional
    )
    assert ours == theirs
    assert encode_batch(records) == built_by_kafka_python(records, Compression.NONE)


@every_compression
def test_both_parse_the_same_header(compression: Compression) -> None:
    data = encode_batch(
        large_records(),
        compression=compression,
        producer_id=77,
        producer_epoch=3,
        base_sequence=2**31 - 10,
        transactional=True,
        leader_epoch=4,
    )
    ours, theirs = check_batch(data), DefaultRecordBatch(data)
    assert (ours.base_offset, ours.end_offset) == (theirs.base_offset, theirs.next_offset)
    assert (ours.size_bytes, ours.crc) == (theirs.size_in_bytes, theirs.crc)
    assert (ours.leader_epoch, ours.attributes) == (theirs.leader_epoch, theirs.attributes)
    assert ours.base_timestamp_ms == theirs.first_timestamp
    assert ours.max_timestamp_ms == theirs.max_timestamp
    assert (ours.producer_id, ours.producer_epoch) == (theirs.producer_id, theirs.producer_epoch)
    assert (ours.base_sequence, ours.last_sequence) == (theirs.base_sequence, theirs.last_sequence)
    assert ours.record_count == theirs.records_count
    assert ours.is_transactional and theirs.is_transactional


def test_append_time_and_control_flags_are_compatible() -> None:
    records = [Record(offset=0, timestamp_ms=1, key=b"\0\0\0\1", value=b"\0\0\0\0\0\0")]
    stamped = with_max_timestamp(encode_batch(records), 99, append_time=True)
    assert read_by_kafka_python(stamped) == read_records(stamped)
    assert read_records(stamped)[0].timestamp_ms == 99
    marker = DefaultRecordBatch(encode_batch(records, control=True, transactional=True))
    assert marker.is_control_batch and next(iter(marker)).commit


def test_a_batch_without_records_is_read() -> None:
    """A client moves on to the next offset."""
    batch = DefaultRecordBatch(encode_batch([], base_offset=100, last_offset_delta=9))
    assert batch.validate_crc()
    assert (list(batch), batch.next_offset) == ([], 110)
