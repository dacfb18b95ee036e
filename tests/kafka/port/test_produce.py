"""Produce: what is stored, and the error codes of what is not."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from google_crc32c import value as crc32c

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.kafka.wire.messages.produce import ProduceResponse
from frazil.log import Compression, Record, encode_batch
from frazil.settings import LogConfig, TopicConfig
from tests.kafka.port.opened import Client, OpenedPort, opened
from tests.kafka.port.test_connection import batch, produce

VERSION = 9


def of_producer(
    sequence: int, *, producer_id: int = 7, epoch: int = 0, value: bytes = b"v"
) -> bytes:
    """Return a batch of one record of an idempotent producer."""
    record = Record(offset=0, timestamp_ms=1, key=b"k", value=value)
    return encode_batch(
        [record], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


def send(
    client: Client, *batches: bytes, topic: str = "t", acks: int = -1
) -> list[tuple[int, int]]:
    """Return code and offset of each partition."""
    response = client.ask(ProduceResponse, produce(topic, list(batches), acks), VERSION)
    results = response.responses[0].partition_responses
    return [(result.error_code, result.base_offset) for result in results]


def stored(port: OpenedPort, topic: str = "t") -> list[bytes | None]:
    reader = port.log.reader(topic, "earliest")
    values = [r.value for batches in iter(reader.read, []) for b in batches for r in b.records()]
    reader.close()
    return values


@pytest.mark.parametrize("compression", list(Compression))
def test_every_codec_is_stored(tmp_path: Path, compression: Compression) -> None:
    records = [Record(offset=i, timestamp_ms=i, key=b"k", value=bytes(2000)) for i in range(3)]
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig())
        assert send(client, encode_batch(records, compression=compression)) == [(0, 0)]
        assert stored(port) == [bytes(2000)] * 3


def test_sequences(tmp_path: Path) -> None:
    """A repeated batch gets its offset; a gap, or a batch too old, is out of order. Error 46 would
    be taken for success."""
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig())
        assert [send(client, of_producer(n))[0] for n in range(8)] == [(0, n) for n in range(8)]
        assert send(client, of_producer(7)) == [(0, 7)], "repeated"
        assert send(client, of_producer(9)) == [(45, -1)], "a gap"
        assert send(client, of_producer(0)) == [(45, -1)], "older than what is remembered"
        assert send(client, of_producer(0, epoch=1)) == [(0, 8)]
        assert send(client, of_producer(8)) == [(47, -1)], "fenced"
        assert len(stored(port)) == 9


def test_what_follows_a_refused_first_batch_is_refused(tmp_path: Path) -> None:
    """The client has sent it already. Otherwise it would be the producer's first batch, and the
    retry of the refused one would come too late."""
    damaged = bytearray(of_producer(0, value=b"first"))
    damaged[-1] ^= 1
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig())
        for data in (bytes(damaged), of_producer(1), of_producer(2)):
            client.send(produce("t", [data]), VERSION)
        codes = [
            client.receive(ProduceResponse, VERSION)[1].responses[0].partition_responses[0]
            for _ in range(3)
        ]
        assert [result.error_code for result in codes] == [2, 45, 45]
        assert send(client, of_producer(0, value=b"first")) == [(0, 0)]
        assert send(client, of_producer(1)) == [(0, 1)]
        assert stored(port) == [b"first", b"v"]


def test_a_fenced_producer_does_not_hide_what_was_refused(tmp_path: Path) -> None:
    """A batch of an older epoch that comes late says nothing about the first of the newer one."""
    damaged = bytearray(of_producer(0, epoch=1))
    damaged[-1] ^= 1
    late = bytearray(of_producer(3, epoch=0))
    late[-1] ^= 1
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig())
        assert send(client, bytes(damaged)) == [(2, -1)]
        assert send(client, bytes(late)) == [(2, -1)]
        assert send(client, of_producer(1, epoch=1)) == [(45, -1)]
        assert send(client, of_producer(0, epoch=1)) == [(0, 0)]


def transactional() -> bytes:
    record = Record(offset=0, timestamp_ms=1, key=b"k", value=b"v")
    return encode_batch(
        [record], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )


def bomb() -> bytes:
    """Return a batch of 100 MB of zeros, compressed to 100 KB."""
    compressor = zlib.compressobj(wbits=31)
    body = b"".join(compressor.compress(bytes(10**6)) for _ in range(100)) + compressor.flush()
    head = encode_batch([Record(offset=0, timestamp_ms=1, key=b"k", value=b"v")])
    return recrc(head[:21] + (1).to_bytes(2, "big") + head[23:61] + body)


def recrc(data: bytes) -> bytes:
    """Return a batch with the right length and checksum."""
    length = (len(data) - 12).to_bytes(4, "big")
    check: bytes = crc32c(data[21:]).to_bytes(4, "big")
    return data[:8] + length + data[12:17] + check + data[21:]


@pytest.mark.parametrize(
    ("topic", "data", "acks", "code"),
    [
        ("nowhere", batch(b"v"), -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("otlp_logs", batch(b"v"), -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("__internal", batch(b"v"), -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("t", batch(b"v"), 2, ErrorCode.INVALID_REQUIRED_ACKS),
        ("t", b"", -1, ErrorCode.INVALID_RECORD),
        ("t", batch(b"v")[:-1], -1, ErrorCode.INVALID_RECORD),
        ("t", batch(b"v") * 2, -1, ErrorCode.INVALID_RECORD),
        ("t", transactional(), -1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ("t", bomb(), -1, ErrorCode.MESSAGE_TOO_LARGE),
        ("t", batch(bytes(100_000)), -1, ErrorCode.MESSAGE_TOO_LARGE),
        (
            "compacted",
            encode_batch([Record(offset=0, timestamp_ms=1, key=None, value=b"v")]),
            -1,
            ErrorCode.INVALID_RECORD,
        ),
    ],
)
def test_refused_batches(tmp_path: Path, topic: str, data: bytes, acks: int, code: int) -> None:
    """Each has Kafka's code, and nothing is stored."""
    small = LogConfig(batch_bytes_max=50_000)
    with opened(tmp_path, log_config=small) as port, port.client() as client:
        for name in ("t", "otlp_logs", "__internal"):
            port.log.create_topic(name, TopicConfig())
        port.log.create_topic("compacted", TopicConfig(cleanup="compact"))
        assert send(client, data, topic=topic, acks=acks) == [(code, -1)]
        if topic != "nowhere":
            assert not stored(port, topic)


def test_records_without_a_key_are_named(tmp_path: Path) -> None:
    """Clients fail these with the reason, and the others of the batch with another error."""
    keys = [b"k", None, b"k", None]
    records = [
        Record(offset=i, timestamp_ms=i, key=key, value=bytes(2000)) for i, key in enumerate(keys)
    ]
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig(cleanup="compact"))
        for compression in (Compression.NONE, Compression.LZ4):
            request = produce("t", [encode_batch(records, compression=compression)])
            response = client.ask(ProduceResponse, request, VERSION)
            (result,) = response.responses[0].partition_responses
            assert result.error_code == ErrorCode.INVALID_RECORD
            assert [each.batch_index for each in result.record_errors] == [1, 3]
        assert stored(port) == []


@pytest.mark.parametrize("compression", list(Compression))
def test_a_topic_chooses_compression_and_timestamps(
    tmp_path: Path, compression: Compression
) -> None:
    """Whatever the producer sends; sequences go on as they were."""
    records = [Record(offset=i, timestamp_ms=i, key=b"k", value=bytes(2000)) for i in range(3)]
    name = compression.name.lower()
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig(compression=name, timestamps="append"))  # type: ignore[arg-type]
        for number, sent in enumerate((Compression.NONE, Compression.LZ4)):
            data = encode_batch(
                records, compression=sent, producer_id=7, producer_epoch=0, base_sequence=number * 3
            )
            for _ in range(2):  # a repeated batch gets its first offset
                response = client.ask(ProduceResponse, produce("t", [data]), VERSION)
                (result,) = response.responses[0].partition_responses
                assert (result.error_code, result.base_offset) == (0, number * 3)
                assert result.log_append_time_ms > 10**12
        reader = port.log.reader("t", "earliest")
        batches = reader.read()
        reader.close()
        assert [batch.header.compression for batch in batches] == [compression] * 2
        for batch in batches:
            (timestamp_ms,) = {record.timestamp_ms for record in batch.records()}
            assert timestamp_ms == batch.header.max_timestamp_ms > 10**12
        assert stored(port) == [bytes(2000)] * 6


def test_without_acks_there_is_no_response(tmp_path: Path) -> None:
    """A refused batch ends the connection: nothing else could tell."""
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig())
        client.send(produce("t", [batch(b"v")], acks=0), VERSION)
        assert client.ask(ApiVersionsResponse, ApiVersionsRequest(), 0).error_code == 0
        assert port.log.wait_for("t", 0, 0, 30)
        client.send(produce("t", [b"damaged"], acks=0), VERSION)
        assert client.is_closed()
        assert stored(port) == [b"v"]


def test_partitions_are_answered_apart(tmp_path: Path) -> None:
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig(partitions=2))
        results = send(client, batch(b"a"), batch(b"b"), batch(b"c"))
        assert results == [(0, 0), (0, 0), (3, -1)]


def test_producer_ids_never_repeat(tmp_path: Path) -> None:
    """Not even above an id that only the log knows."""
    ids = []
    for _ in range(3):
        with opened(tmp_path) as port, port.client() as client:
            port.log.create_topic("t", TopicConfig())
            request = InitProducerIdRequest(transactional_id=None)
            response = client.ask(InitProducerIdResponse, request, 4)
            assert (response.error_code, response.producer_epoch) == (0, 0)
            ids.append(response.producer_id)
            send(client, of_producer(0, producer_id=response.producer_id + 5000))
        (tmp_path / "kafka" / "producer_ids.ckpt").unlink()
    assert ids[1] > ids[0] + 5000
    assert ids[2] > ids[1] + 5000
