"""Batches from clients: compiled code decides as the reference does, on any bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frazil.errors import Malformed, TooLarge
from frazil.log import Record
from frazil.log.format.batch import HEADER_BYTES, encode_batch
from frazil.log.format.compression import Compression, compress
from frazil.log.produce import append_of_batch, validate_produced
from frazil.settings import TopicConfig
from tests.log.build import TOPIC, batches, open_log, submit
from tests.log.format.test_batch import (
    ATTRIBUTES,
    BASE_TIMESTAMP,
    altered,
    record_lists,
    sealed,
    varint,
    with_body,
)
from tests.log.format.test_kafka_clients import built_by_kafka_python
from tests.log.produce.reference import validate_by_records
from tests.sim.disk import SimDisk

INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)

KEYED = Record(offset=0, timestamp_ms=1_700_000_000_000, key=b"k" * 70, value=b"value")
HEADERS = (("é", b"c"), ("m", None))
KEYLESS = Record(offset=1, timestamp_ms=1_700_000_000_300, key=None, value=None, headers=HEADERS)
BATCH = encode_batch([KEYED, KEYLESS], producer_id=7, producer_epoch=1, base_sequence=3)


def assert_same_verdict(data: bytes) -> bool:
    """Compare the result, or the kind and text of the error. Returns whether the batch is valid."""
    try:
        expected = validate_by_records(data)
    except (Malformed, TooLarge) as error:
        reason = str(error)
        if "is not UTF-8" in reason:
            reason = reason.partition(":")[0]  # Python says more
        try:
            found: object = validate_produced(data)
        except type(error) as raised:
            found = str(raised)[: len(reason)]
        assert found == reason
        return False
    assert validate_produced(data) == expected
    return True


@given(records=record_lists(), compression=st.sampled_from(Compression))
def test_batches_of_kafka_python_are_valid(records: list[Record], compression: Compression) -> None:
    data = built_by_kafka_python(records, compression)
    assert assert_same_verdict(data)
    keyless = [record.offset for record in records if record.key is None]
    assert validate_produced(data).keyless_index == (keyless[0] if keyless else None)


def test_every_changed_byte_gets_the_verdict_of_the_reference() -> None:
    """Any other value of any one byte, with a CRC that agrees; without one it is refused."""
    for position in range(len(BATCH)):
        changed = bytearray(BATCH)
        for value in range(256):
            changed[position] = value
            assert_same_verdict(sealed(bytes(changed)))
        # The CRC does not cover the leader epoch.
        assert assert_same_verdict(bytes(changed)) == (position in range(12, 16))


@pytest.mark.parametrize("compression", list(Compression)[1:])
def test_every_changed_bit_of_a_compressed_batch_gets_the_verdict_of_the_reference(
    compression: Compression,
) -> None:
    data = encode_batch([KEYED, KEYLESS], compression=compression)
    for position in range(HEADER_BYTES, len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            assert_same_verdict(sealed(bytes(changed)))


@given(
    body=st.binary(max_size=100),
    count=st.integers(1, 3),
    compression=st.sampled_from(Compression),
)
def test_any_bytes_get_the_verdict_of_the_reference(
    body: bytes, count: int, compression: Compression
) -> None:
    assert_same_verdict(with_body(compress(compression, body), count, compression))


NUMBERS = st.integers(0, 70) | st.sampled_from([2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64])
PIECES = st.one_of(
    NUMBERS.map(varint),
    st.integers(1, 10).map(lambda length: b"\x80" * length + b"\0"),
    st.sampled_from([b"\0", b"\x01", b"\x02", b"ab", "é".encode(), b"\xff", b"\xed\xa0\x80"]),
)


@given(st.lists(PIECES, max_size=14), st.integers(1, 2), st.sampled_from([b"", b"\0"]))
@example([b"\0\0\0\x01\x01\x02\x01\x01"], 1, b"")
@example([b"\0\0\0\x01\x01\0"], 1, b"\0")
def test_any_fields_get_the_verdict_of_the_reference(
    pieces: list[bytes], count: int, rest: bytes
) -> None:
    """Records of plausible and odd fields, after a length that fits."""
    fields = b"".join(pieces)
    record = varint(2 * len(fields)) + fields
    assert_same_verdict(with_body(record * count + rest, count))


@given(base_ms=INT64, delta_ms=INT64)
def test_timestamps_do_not_overflow(base_ms: int, delta_ms: int) -> None:
    fields = b"\0" + varint((delta_ms << 1) ^ (delta_ms >> 63)) + b"\0\x01\x01\0"
    data = altered(with_body(varint(2 * len(fields)) + fields), BASE_TIMESTAMP, base_ms)
    assert assert_same_verdict(data) == (-1 <= base_ms + delta_ms < 2**63)


def test_a_compressed_batch_of_nothing_is_malformed() -> None:
    for compression in list(Compression)[1:]:
        for body in (compress(compression, b""), b""):
            assert not assert_same_verdict(with_body(body, 1, compression))
            assert not assert_same_verdict(altered(with_body(body), ATTRIBUTES, compression))


def test_the_fault_says_where_it_is() -> None:
    good = BATCH[HEADER_BYTES:]
    with pytest.raises(Malformed, match="a record of 63 bytes with 2 left, in record 2"):
        validate_produced(with_body(good + b"\x7e\0\0", count=3))


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_a_batch_is_stored_from_the_memory_of_its_request(compression: Compression) -> None:
    """No copy is made of a batch within a larger request."""
    data = encode_batch([KEYED], compression=compression)
    request = bytearray(b"before" + data + b"after")
    part = memoryview(request)[6 : 6 + len(data)]
    append = append_of_batch(part)
    (kept,) = append.parts
    assert isinstance(kept, memoryview) and kept.obj is request and bytes(kept) == data
    log = open_log(SimDisk())
    (answer,) = submit(log, append)
    log.writer.step()
    assert answer.result(0) == (0, 1, False)
    assert [batch.payload for batch in batches(log)] == [data]


def test_a_compacted_topic_refuses_records_without_keys() -> None:
    log = open_log(SimDisk(), topic=TopicConfig(cleanup="compact"))
    with pytest.raises(Malformed, match="needs a key, but record 1 has none"):
        log.append(TOPIC, append_of_batch(BATCH))
    (answer,) = submit(log, append_of_batch(encode_batch([KEYED])))
    log.writer.step()
    assert answer.result(0) == (0, 1, False)
