"""Fetch and ListOffsets: what can be read, and when."""

from __future__ import annotations

import threading
from pathlib import Path

from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.kafka.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from frazil.kafka.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from frazil.log import (
    Append,
    Marker,
    Record,
    append_of_marker,
    append_of_records,
    encode_batch,
    record_at_time,
)
from frazil.log.produce import append_of_batch
from frazil.settings import TopicConfig
from tests.kafka.port.opened import Client, OpenedPort, opened

LONG_MS = 30_000


def records(*values: bytes, timestamp_ms: int = 1) -> Append:
    return append_of_records(
        [
            Record(offset=i, timestamp_ms=timestamp_ms, key=b"k", value=v)
            for i, v in enumerate(values)
        ]
    )


def transactional(
    value: bytes, sequence: int, producer_id: int = 1, timestamp_ms: int = 1
) -> Append:
    return append_of_batch(
        encode_batch(
            [Record(offset=0, timestamp_ms=timestamp_ms, key=b"k", value=value)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
    )


def marker(kind: Marker, producer_id: int = 1) -> Append:
    return append_of_marker(
        kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1
    )


def filled(port: OpenedPort, *appends: Append) -> None:
    port.log.create_topic("t", TopicConfig())
    for append in appends:
        port.log.append_durably("t", append)


def request(
    offset: int,
    *,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 2**20,
    isolation: int = 0,
    epoch: int = -1,
) -> FetchRequest:
    asked = FetchRequest.FetchPartition(0, epoch, offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        isolation_level=isolation,
        topics=[FetchRequest.FetchTopic(topic="t", partitions=[asked])],
    )


def fetch(client: Client, asked: FetchRequest, version: int = 11) -> FetchResponse.PartitionData:
    response = client.ask(FetchResponse, asked, version)
    assert response.session_id == 0
    return response.responses[0].partitions[0]


def test_batches_come_as_they_are_stored(tmp_path: Path) -> None:
    """Whole, also for an offset inside; as many as fit, but at least one."""
    with opened(tmp_path) as port, port.client() as client:
        filled(port, records(b"a", b"b", b"c"), records(b"d"))
        reader = port.log.reader("t", "earliest")
        first, second = (batch.payload for batch in reader.read())
        reader.close()
        for version in range(4, 13):
            found = fetch(client, request(1), version)
            assert bytes(found.records or b"") == first + second
            assert (found.error_code, found.high_watermark) == (0, 4)
        assert fetch(client, request(0, max_bytes=1)).records == first
        assert fetch(client, request(3, max_bytes=1)).records == second
        assert fetch(client, request(4)).records == b""
        assert fetch(client, request(5)).error_code == 1
        assert fetch(client, request(0, epoch=1)).error_code == 75


def test_only_the_first_batch_of_a_response_may_be_too_large(tmp_path: Path) -> None:
    """A client may refuse a larger response than it has asked for, and would never go on."""
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig(partitions=3))
        for partition in (1, 2):
            for _ in range(3):
                port.log.append_durably("t", records(bytes(1000)), partition=partition)
        reader = port.log.reader("t", "earliest", partition=1)
        size = len(reader.read()[0].payload)
        reader.close()

        def sizes(
            max_bytes: int, partition_max_bytes: int = 2**20, min_bytes: int = 1
        ) -> list[int]:
            asked = [
                FetchRequest.FetchPartition(index, partition_max_bytes=partition_max_bytes)
                for index in range(3)
            ]
            request = FetchRequest(
                max_wait_ms=LONG_MS,
                min_bytes=min_bytes,
                max_bytes=max_bytes,
                topics=[FetchRequest.FetchTopic(topic="t", partitions=asked)],
            )
            found = client.ask(FetchResponse, request, 11).responses[0].partitions
            return [len(each.records or b"") // size for each in found]

        assert sizes(1) == [0, 1, 0]
        assert sizes(2 * size - 1) == [0, 1, 0]
        assert sizes(2 * size) == [0, 2, 0]
        assert sizes(5 * size + 1, min_bytes=2**20) == [0, 3, 2], "full: there is no need to wait"
        assert sizes(2**20, partition_max_bytes=size) == [0, 1, 1]
        assert sizes(2**20, partition_max_bytes=2 * size - 1, min_bytes=5 * size) == [0, 1, 1]
        assert sizes(2**20, partition_max_bytes=1) == [0, 1, 0], "as Kafka: the client asks again"


def test_a_fetch_waits_for_the_next_commit(tmp_path: Path) -> None:
    """And for as many bytes as the client asks for."""
    with opened(tmp_path) as port, port.client() as client:
        filled(port, records(b"a"))
        client.send(request(1, wait_ms=LONG_MS), 11)
        client.send(request(1, wait_ms=LONG_MS, min_bytes=200), 11)
        timer = threading.Timer(0.2, port.log.append_durably, ("t", records(b"b")))
        timer.start()
        _, response = client.receive(FetchResponse, 11)
        assert response.responses[0].partitions[0].high_watermark == 2
        port.log.append_durably("t", records(b"c" * 100))
        port.log.append_durably("t", records(b"d" * 100))
        _, response = client.receive(FetchResponse, 11)
        assert len(response.responses[0].partitions[0].records or b"") >= 200
        timer.join()


def test_a_fetch_ends_without_records(tmp_path: Path) -> None:
    """At the time the client gives; and when the port closes, at once."""
    with opened(tmp_path) as port:
        filled(port)
        client = port.client()
        assert fetch(client, request(0, wait_ms=50)).records == b""
        client.send(request(0, wait_ms=LONG_MS), 11)
        with port.client() as other:  # so that the first fetch has arrived
            fetch(other, request(0))
    with client:
        _, response = client.receive(FetchResponse, 11)
        assert response.responses[0].partitions[0].records == b""
        assert client.is_closed()


def test_committed_readers_learn_what_was_aborted(tmp_path: Path) -> None:
    """They stop at the first open transaction; others see everything."""
    with opened(tmp_path) as port, port.client() as client:
        filled(
            port,
            transactional(b"aborted", 0),
            marker(Marker.ABORT),
            records(b"plain"),
            transactional(b"open", 0, producer_id=2),
            records(b"behind"),
        )
        found = fetch(client, request(0, isolation=1))
        assert (found.last_stable_offset, found.high_watermark) == (3, 5)
        assert [(a.producer_id, a.first_offset) for a in found.aborted_transactions or ()] == [
            (1, 0)
        ]
        assert b"plain" in bytes(found.records or b"")
        assert b"open" not in bytes(found.records or b"")
        everything = bytes(fetch(client, request(0)).records or b"")
        assert b"open" in everything and b"behind" in everything
        assert fetch(client, request(3, isolation=1)).records == b""
        port.log.append_durably("t", marker(Marker.COMMIT, producer_id=2))
        assert b"behind" in bytes(fetch(client, request(3, isolation=1)).records or b"")


def test_offsets(tmp_path: Path) -> None:
    """The beginning, the end, and the first record at a time."""

    def find(timestamp_ms: int, isolation: int = 0) -> tuple[int, int]:
        asked = ListOffsetsRequest.ListOffsetsPartition(0, timestamp=timestamp_ms)
        topics = [ListOffsetsRequest.ListOffsetsTopic("t", [asked])]
        listed = ListOffsetsRequest(-1, isolation, topics)
        response = client.ask(ListOffsetsResponse, listed, 7)
        found = response.topics[0].partitions[0]
        assert found.error_code == 0
        return found.timestamp, found.offset

    with opened(tmp_path) as port, port.client() as client:
        filled(
            port,
            records(b"a", timestamp_ms=100),
            records(b"b", b"c", timestamp_ms=300),
            records(b"d", timestamp_ms=200),
            transactional(b"open", 0, timestamp_ms=299),
        )
        assert find(-1) == (-1, 5)
        assert find(-1, isolation=1) == (-1, 4)
        assert find(-2) == (-1, 0)
        assert find(-3) == (300, 1)
        assert find(0) == (100, 0)
        assert find(101) == (300, 1)
        assert find(301) == (-1, -1)


def test_the_time_of_an_open_transaction_is_not_found(tmp_path: Path) -> None:
    """The search ends at the last stable offset."""
    with opened(tmp_path) as port:
        filled(port, records(b"a", timestamp_ms=100), transactional(b"b", 0, timestamp_ms=400))
        partition = port.log.partition("t", 0)
        assert record_at_time(partition, 200) is None
        port.log.append_durably("t", marker(Marker.COMMIT))
        found = record_at_time(partition, 200)
        assert found is not None and found.offset == 1


def test_the_only_epoch_ends_at_the_end(tmp_path: Path) -> None:
    with opened(tmp_path) as port, port.client() as client:
        filled(port, records(b"a", b"b"))
        ends = []
        for epoch in (0, 1):
            asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(0, -1, epoch)
            topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic("t", [asked])
            question = OffsetForLeaderEpochRequest(topics=[topic])
            response = client.ask(OffsetForLeaderEpochResponse, question, 4)
            found = response.topics[0].partitions[0]
            ends.append((found.error_code, found.leader_epoch, found.end_offset))
        assert ends == [(0, 0, 2), (0, -1, -1)]
