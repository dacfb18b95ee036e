"""Producing to the topics of telemetry: what is checked, changed, and stored once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from frazil.ingest import Redactor, compile_rules
from frazil.ingest.admission import Gate
from frazil.ingest.receiver import ACCEPTED_RECORDS, REFUSED_REQUESTS, Receiver
from frazil.ingest.record_intake import RecordIntake
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.produce.otlp_batches import RECORDS_MAX
from frazil.kafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from frazil.kafka.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from frazil.kafka.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from frazil.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from frazil.kafka.wire.messages.produce import ProduceResponse
from frazil.log import Compression, Log, Record, encode_batch
from frazil.model import KiB, Signal, SystemClock
from frazil.settings import IngestConfig, LimitsConfig, RedactRule
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs
from tests.ingest.test_limits_and_redaction import points
from tests.kafka.port.opened import Client, OpenedPort, opened
from tests.kafka.port.test_connection import produce

VERSION = 9
TOPIC = Signal.LOGS.topic
OLD_MS = 1_000
"""A time of records that is not the node's."""


def body(number: int, text: str = "") -> bytes:
    record = log_record(number)
    if text:
        record.body.string_value = text
    return logs(record)


def batch(
    values: Sequence[bytes | None], *, sequence: int = -1, codec: Compression = Compression.NONE
) -> bytes:
    """Return a batch, of an idempotent producer if it has a sequence."""
    records = [
        Record(offset=i, timestamp_ms=OLD_MS, key=b"k", value=value, headers=(("h", b"1"),))
        for i, value in enumerate(values)
    ]
    if sequence < 0:
        return encode_batch(records, compression=codec)
    return encode_batch(
        records, compression=codec, producer_id=7, producer_epoch=0, base_sequence=sequence
    )


@contextmanager
def receiving(
    config: IngestConfig | None = None, rules: Sequence[RedactRule] = ()
) -> Iterator[Callable[[Log], RecordIntake]]:
    """Yield what makes the intake of a log."""
    config, clock = config or IngestConfig(), SystemClock()
    redactor = Redactor(compile_rules(rules), b"k" * 32) if rules else None
    with ExitStack() as opened:

        def intake(log: Log) -> RecordIntake:
            gate = Gate(config, log.budget, clock, random.Random(1))
            receiver = Receiver(log, gate, config, clock, redactor)
            opened.callback(receiver.close)
            return RecordIntake(receiver)

        yield intake


@contextmanager
def opened_port(
    folder: Path, config: IngestConfig | None = None, rules: Sequence[RedactRule] = ()
) -> Iterator[tuple[OpenedPort, Client]]:
    with (
        receiving(config, rules) as intake,
        opened(folder, otlp=intake) as port,
        port.client() as client,
    ):
        yield port, client


def send(client: Client, data: bytes) -> ProduceResponse.PartitionProduceResponse:
    response = client.ask(ProduceResponse, produce(TOPIC, [data]), VERSION)
    return response.responses[0].partition_responses[0]


def stored(port: OpenedPort) -> list[Record]:
    reader = port.log.reader(TOPIC, "earliest")
    records = [r for batches in iter(reader.read, []) for b in batches for r in b.records()]
    reader.close()
    return records


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("sequence", [-1, 0])
def test_requests_are_stored_as_sent(tmp_path: Path, codec: Compression, sequence: int) -> None:
    """In one batch or in one each, with key, headers, and the time of the node."""
    bodies = [body(number) for number in range(50)]
    before = ACCEPTED_RECORDS.value(signal="logs", transport="kafka")
    with opened_port(tmp_path) as (port, client):
        result = send(client, batch(bodies, sequence=sequence, codec=codec))
        assert (result.error_code, result.base_offset) == (0, 0)
        found = stored(port)
        assert [record.value for record in found] == bodies
        assert [record.offset for record in found] == list(range(50))
        assert {(record.key, record.headers[0]) for record in found} == {(b"k", ("h", b"1"))}
        assert {record.timestamp_ms for record in found} == {result.log_append_time_ms}
        assert result.log_append_time_ms > OLD_MS
    assert ACCEPTED_RECORDS.value(signal="logs", transport="kafka") == before + 50


def test_one_bad_record_refuses_its_batch(tmp_path: Path) -> None:
    before = REFUSED_REQUESTS.total(signal="logs", transport="kafka")
    with opened_port(tmp_path, IngestConfig(body_bytes_max=64 * KiB)) as (port, client):
        for number, bad in enumerate((b"garbage", b'{"resourceLogs":[]}', None)):
            for sequence in (-1, 0):
                data = batch([body(number), bad, body(9)], sequence=sequence)
                result = send(client, data)
                assert result.error_code == ErrorCode.INVALID_RECORD
                assert "record 1 of the batch" in (result.error_message or "")
                assert [each.batch_index for each in result.record_errors] == [1]
                assert ("otlp_proto" in (result.error_message or "")) == (number == 1)
        large = batch([body(1), body(2, "x" * 100 * KiB)])
        assert send(client, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
        many = batch([b""] * (RECORDS_MAX + 1))
        assert send(client, many).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert not stored(port)
    assert REFUSED_REQUESTS.total(signal="logs", transport="kafka") == before + 7


def test_a_request_is_stored_once(tmp_path: Path) -> None:
    """By its sequence, or by its digest: alone, in another batch, or through an OTLP port."""
    with opened_port(tmp_path) as (port, client):
        numbered = batch([body(1), body(2)], sequence=0)
        assert [send(client, numbered).base_offset for _ in range(2)] == [0, 0]
        assert send(client, batch([body(3), body(4)])).base_offset == 2
        assert send(client, batch([body(3), body(4)])).base_offset == 2, "repeated"
        mixed = send(client, batch([body(5), body(4), body(6)]))
        assert (mixed.error_code, mixed.base_offset) == (0, -1), "no offset fits all of them"
        assert [record.value for record in stored(port)] == [body(n) for n in range(1, 7)]


def test_without_deduplication_a_batch_stays_whole(tmp_path: Path) -> None:
    with opened_port(tmp_path, IngestConfig(deduplicate=False)) as (port, client):
        for base_offset in (0, 2):
            assert send(client, batch([body(1), body(1)])).base_offset == base_offset
        assert len(stored(port)) == 4


def text_of(stored: bytes) -> str:
    request = ExportLogsServiceRequest.FromString(stored)
    return request.resource_logs[0].scope_logs[0].log_records[0].body.string_value


RULES = (
    RedactRule(pattern="secret", action="mask"),
    RedactRule(pattern="private", action="drop"),
)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
@pytest.mark.parametrize("sequence", [-1, 5])
def test_redaction_and_limits_before_the_log(
    tmp_path: Path, codec: Compression, sequence: int
) -> None:
    """The batch keeps its place in the order of its producer; a repetition is recognized."""
    config = IngestConfig(limits=LimitsConfig(log_body_bytes_max=100))
    bodies = [body(1, "a secret"), body(2), body(3, "private" + "x" * 500)]
    with opened_port(tmp_path, config, RULES) as (port, client):
        data = batch(bodies, sequence=sequence, codec=codec)
        assert [send(client, data).base_offset for _ in range(2)] == [0, 0]
        if sequence >= 0:
            assert send(client, batch([body(4)], sequence=sequence + 3)).base_offset == 3
        texts = [text_of(record.value or b"") for record in stored(port)][:3]
        assert texts == ["a ***", text_of(body(2)), "x" * 100]
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*.log"))
    assert b"secret" not in files and b"private" not in files


def test_what_can_never_be_a_row_stays_for_the_dead_letters(tmp_path: Path) -> None:
    """Kafka has no partial success. The request is stored as it is; redacted, too."""
    wrong = logs(log_record(1, trace_id=b"short"), log_record(2))
    with opened_port(tmp_path) as (port, client):
        assert send(client, batch([wrong])).error_code == 0
        assert [record.value for record in stored(port)] == [wrong]


def test_series_are_limited_on_every_port(tmp_path: Path) -> None:
    """And a request without what is left of it keeps its offset."""
    config = IngestConfig(limits=LimitsConfig(series_per_service_max=1))
    with opened_port(tmp_path, config) as (port, client):
        bodies = [points("shop", "m", range(1)), points("shop", "m", range(1, 3))]
        response = client.ask(
            ProduceResponse, produce(Signal.METRICS.topic, [batch(bodies, sequence=0)]), VERSION
        )
        assert response.responses[0].partition_responses[0].error_code == 0
        reader = port.log.reader(Signal.METRICS.topic, "earliest")
        first, second = (r.value for b in reader.read() for r in b.records())
        reader.close()
        assert first == bodies[0] and second is not None and len(second) < len(bodies[1])


def test_a_topic_is_declared(tmp_path: Path) -> None:
    """It has its partitions, offsets and id over a restart; what would break its rows is
    refused."""
    with opened_port(tmp_path) as (port, client):
        assert create(client, **{"frazil.otlp": "spans"}) == ErrorCode.INVALID_CONFIG
        assert create(client, **{"frazil.otlp": "logs", "retention.ms": "1"}) == (
            ErrorCode.INVALID_CONFIG
        )
        assert create(client, **{"frazil.otlp": "logs"}) == ErrorCode.NONE
        assert create(client) == ErrorCode.TOPIC_ALREADY_EXISTS
        grown = CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="mine", count=3)]
        )
        assert client.ask(CreatePartitionsResponse, grown, 3).results[0].error_code == 0
        before = described(client)
        for index, records in enumerate((1, 2, 3)):
            request = produce("mine", [batch([body(index * 10 + n) for n in range(records)])])
            request.topic_data[0].partition_data[0].index = index
            result = client.ask(ProduceResponse, request, VERSION).responses[0]
            (found,) = result.partition_responses
            assert (found.index, found.error_code, found.base_offset) == (index, 0, 0)
        assert ends(port) == [0, 1, 2, 3]
        erased = DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    "mine", [DeleteRecordsRequest.DeleteRecordsPartition(0, -1)]
                )
            ]
        )
        (topic,) = client.ask(DeleteRecordsResponse, erased, 2).topics
        assert topic.partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with opened_port(tmp_path) as (port, client):
        assert described(client) == before == {TOPIC: [0], "mine": [0, 1, 2]}
        assert create(client, "other", **{"frazil.otlp": "logs"}) == ErrorCode.NONE
        send(client, batch([body(99)]))
        assert ends(port) == [1, 1, 2, 3, 0], "what has records is not used again"


def create(client: Client, name: str = "mine", **configs: str) -> int:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[CreateTopicsRequest.CreatableTopicConfig(*each) for each in configs.items()],
    )
    (result,) = client.ask(CreateTopicsResponse, CreateTopicsRequest(topics=[topic]), 7).topics
    return result.error_code


def described(client: Client) -> dict[str | None, list[int]]:
    """The partitions of topics of logs."""
    response = client.ask(MetadataResponse, MetadataRequest(topics=None), 12)
    return {
        topic.name: [each.partition_index for each in topic.partitions]
        for topic in response.topics
        if topic.name in (TOPIC, "mine")
    }


def ends(port: OpenedPort) -> list[int]:
    return [each.view.durable_watermark for each in port.log.topic(TOPIC).partitions]
