"""Transactions over the wire: which version gets which code, and what tools see."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET

import pytest

from frazil.kafka import KafkaUse
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from frazil.kafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from frazil.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.kafka.wire.messages.produce import ProduceRequest, ProduceResponse
from frazil.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from frazil.log import Marker, Record, encode_batch, marker_of, parse_header
from frazil.settings import LogConfig, TopicConfig
from tests.kafka.port.opened import TIMEOUT_S, Client, OpenedPort, opened
from tests.kafka.port.test_connection import produce

ID = "x"
Identity = tuple[int, int]


def init(client: Client) -> Identity:
    while True:
        request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
        response = client.ask(InitProducerIdResponse, request, 4)
        if response.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            assert response.error_code == ErrorCode.NONE
            return response.producer_id, response.producer_epoch


def add(
    client: Client, who: Identity, *partitions: int, version: int = 3, topic: str = "t"
) -> list[int]:
    """Return the codes of the partitions."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(topic, list(partitions))
        ],
    )
    response = client.ask(AddPartitionsToTxnResponse, request, version)
    (found,) = response.results_by_topic_v3_and_below
    return [each.partition_error_code for each in found.results_by_partition]


def send(
    client: Client, who: Identity, sequence: int, version: int, *, transactional: bool = True
) -> int:
    """Send a batch to the first partition. Returns its code."""
    request = batch_of(who, sequence, transactional=transactional)
    response = client.ask(ProduceResponse, request, version)
    return response.responses[0].partition_responses[0].error_code


def batch_of(who: Identity, sequence: int, *, transactional: bool = True) -> ProduceRequest:
    data = encode_batch(
        [Record(offset=0, timestamp_ms=1, key=b"k", value=b"%d" % sequence)],
        producer_id=who[0],
        producer_epoch=who[1],
        base_sequence=sequence,
        transactional=transactional,
    )
    request = produce("t", [data])
    request.transactional_id = ID
    return request


def end(client: Client, who: Identity, version: int, *, is_commit: bool = True) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=ID, producer_id=who[0], producer_epoch=who[1], committed=is_commit
    )
    return client.ask(EndTxnResponse, request, version)


def commit_offset(client: Client, who: Identity, version: int) -> int:
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
        "t", [TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(0, 5)]
    )
    request = TxnOffsetCommitRequest(
        transactional_id=ID,
        group_id="g",
        producer_id=who[0],
        producer_epoch=who[1],
        topics=[topic],
    )
    response = client.ask(TxnOffsetCommitResponse, request, version)
    return response.topics[0].partitions[0].error_code


def values(port: OpenedPort) -> list[bytes | None]:
    reader = port.log.reader("t", "earliest")
    batches = [batch for some in iter(reader.read, []) for batch in some]
    reader.close()
    return [r.value for b in batches if not b.header.is_control for r in b.records()]


def test_codes_by_version(tmp_path: Path) -> None:
    """Old versions of an API get the codes that old clients know."""
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig(partitions=2))
        who = init(client)
        assert [send(client, who, 0, version) for version in (9, 10, 11)] == [48, 48, 120]
        assert [commit_offset(client, who, version) for version in (3, 4)] == [48, 120]
        assert add(client, who, 0, 1, 2) == [55, 55, 3], "none is added if one is unknown"
        assert add(client, who, 0, topic="__internal") == [29]
        assert send(client, who, 0, 9) == 48
        assert add(client, who, 0) == [0]
        assert send(client, who, 0, 9) == 0
        assert send(client, who, 1, 9, transactional=False) == 48
        later = init(client)
        assert [send(client, who, 1, version) for version in (9, 11, 12)] == [47, 47, 47]
        assert [add(client, who, 0, version=version) for version in (1, 2)] == [[47], [90]]
        assert [end(client, who, version).error_code for version in (1, 2)] == [47, 90]
        for version, code in ((1, 47), (2, 90)):
            request = AddOffsetsToTxnRequest(ID, *who, "g")
            assert client.ask(AddOffsetsToTxnResponse, request, version).error_code == code
        resumed = InitProducerIdRequest(ID, 60_000, *who)
        for version, code in ((3, 47), (4, 90)):
            assert client.ask(InitProducerIdResponse, resumed, version).error_code == code
        assert (add(client, later, 0), send(client, later, 0, 9)) == ([0], 0)
        assert end(client, later, 3).error_code == 0
        assert values(port) == [b"0"]


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_transaction_in_every_protocol(tmp_path: Path, version: int) -> None:
    """Version 5 of EndTxn goes with version 12 of Produce, which adds partitions by itself."""
    is_implicit = version == 5
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig(partitions=2))
        who = init(client)
        for number, is_commit in enumerate([True, False, True]):
            if not is_implicit:
                assert add(client, who, 0, version=version) == [0]
            sequence = 0 if is_implicit else number
            assert send(client, who, sequence, 12 if is_implicit else 9) == 0
            request = DescribeProducersRequest(
                topics=[DescribeProducersRequest.TopicRequest("t", [0, 9])]
            )
            described = client.ask(DescribeProducersResponse, request, 0)
            found, missing = described.topics[0].partitions
            assert (found.active_producers[0].producer_id, missing.error_code) == (who[0], 3)
            assert found.active_producers[0].current_txn_start_offset == 2 * number
            response = end(client, who, version, is_commit=is_commit)
            assert response.error_code == 0
            if is_implicit:
                who = response.producer_id, response.producer_epoch
        assert who[1] == (3 if is_implicit else 0)
        assert len(values(port)) == 2


def test_clients_learn_which_protocol_there_is(tmp_path: Path) -> None:
    with opened(tmp_path) as port, port.client() as client:
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        response = client.ask(ApiVersionsResponse, request, 3)
        features = {each.name: each.max_version_level for each in response.finalized_features}
        assert features == {"group.version": 1, "transaction.version": 2}
        assert response.finalized_features_epoch == 0


def test_late_batch_does_not_stop_its_producer(tmp_path: Path) -> None:
    """A repeated batch that arrives after its transaction is refused; the next one is written."""
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig())
        who = init(client)
        assert add(client, who, 0) == [ErrorCode.NONE]
        assert send(client, who, 0, 9) == ErrorCode.NONE
        assert end(client, who, 3).error_code == ErrorCode.NONE
        assert send(client, who, 0, 9) == ErrorCode.INVALID_TXN_STATE
        assert add(client, who, 0) == [ErrorCode.NONE]
        assert send(client, who, 2, 9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(client, who, 1, 9) == ErrorCode.NONE


def test_a_marker_that_compaction_removed_hides_nothing(tmp_path: Path) -> None:
    """Clients skip a producer's batches up to the marker: without both, nothing is to be
    skipped."""
    config = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0.0, tombstone_grace_ms=0)
    log_config = LogConfig(segment_bytes_max=128)
    with opened(tmp_path, log_config=log_config) as port, port.client() as client:
        port.log.create_topic("t", config)
        who = init(client)
        for is_commit in (True, False, True, True):
            assert send(client, who, 0, 12) == ErrorCode.NONE
            ended = end(client, who, 5, is_commit=is_commit)
            who = ended.producer_id, ended.producer_epoch
            for _ in range(2):  # the second round removes markers
                port.log.maintain()
        partition = FetchRequest.FetchPartition(partition_max_bytes=10**6)
        request = FetchRequest(
            max_bytes=10**6,
            isolation_level=1,
            topics=[FetchRequest.FetchTopic("t", partitions=[partition])],
        )
        found = client.ask(FetchResponse, request, 11).responses[0].partitions[0]
        markers = []
        data = bytes(found.records or b"")
        while data:
            header = parse_header(data)
            if header.is_control:
                markers.append(marker_of(data))
            data = data[header.size_bytes :]
        assert Marker.ABORT not in markers
        assert found.aborted_transactions == []


def test_a_producer_leaves_while_its_partition_joins(tmp_path: Path) -> None:
    """Requests that wait for the same transaction are served nevertheless."""
    failures: list[str] = []
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig(partitions=1))
        port.loop.set_exception_handler(lambda _, context: failures.append(str(context)))
        who = init(client)
        is_free = threading.Event()
        port.log.writer.run(is_free.wait)  # nothing becomes durable
        try:
            with port.client() as leaving:
                leaving.send(batch_of(who, 0), 12)
                await_use(port, lambda use: use.in_flight_bytes > 0)
                # Closed with a reset: after an end, what has arrived is still answered.
                leaving.socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            await_use(port, lambda use: use.connections == 1)
            client.send(batch_of(who, 0), 12)
            await_use(port, lambda use: use.in_flight_bytes > 0)
        finally:
            is_free.set()
        _, response = client.receive(ProduceResponse, 12)
        assert response.responses[0].partition_responses[0].error_code == 0
        assert end(client, who, 5).error_code == 0
        assert values(port) == [b"0"]
    assert not failures


def await_use(port: OpenedPort, is_met: Callable[[KafkaUse], bool]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not is_met(port.use()):
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
    port.use()  # what was read by then has reached its handler
