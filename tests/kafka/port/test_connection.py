"""Connections: order, limits, and bytes that are no requests."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.kafka.framing import BUFFER_BYTES, FrameReader
from frazil.kafka.wire.headers import encode_request
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from frazil.kafka.wire.messages.produce import ProduceRequest, ProduceResponse
from frazil.log import Record, encode_batch
from frazil.metrics import Counter, find
from frazil.settings import TopicConfig
from tests.kafka.port.opened import opened

FRAMES = st.lists(st.binary(min_size=8, max_size=3 * BUFFER_BYTES), max_size=5)


@given(
    frames=FRAMES,
    portions=st.lists(st.integers(1, 2 * BUFFER_BYTES), min_size=1, max_size=20),
    hesitates=st.booleans(),
)
def test_frames_do_not_depend_on_how_they_arrive(
    frames: list[bytes], portions: list[int], *, hesitates: bool
) -> None:
    """However the stream is cut, and even if every frame has to wait for admission."""
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    has_waited = False

    def admit(_: int) -> bool:
        nonlocal has_waited
        has_waited = not has_waited and hesitates
        return not has_waited

    reader, found = FrameReader(admit), []
    at = turn = 0
    while at < len(stream):
        space = reader.space()
        count = min(len(space), portions[turn % len(portions)], len(stream) - at)
        space[:count] = stream[at : at + count]
        reader.received(count)
        found += [bytes(frame) for _ in range(12) for frame in reader.frames()]
        at, turn = at + count, turn + 1
    assert found == frames
    assert not reader.is_inside


@pytest.mark.parametrize("size", [-1, 0, 7, -(2**31)])
def test_a_size_that_no_request_has_is_refused(size: int) -> None:
    reader = FrameReader(lambda _: True)
    reader.space()[:4] = struct.pack(">i", size)
    reader.received(4)
    with pytest.raises(Malformed, match="the shortest has 8"):
        list(reader.frames())


def closed(reason: str) -> float:
    counter = find("frazil.kafka.closed.connections")
    assert isinstance(counter, Counter)
    return counter.value(reason=reason)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "request_size"),
        (struct.pack(">i", 0), "request_size"),
        (struct.pack(">i", -1), "request_size"),
        (struct.pack(">i", 2**31 - 1), "request_size"),
        (struct.pack(">ihhih", 10, 9999, 0, 1, -1), "malformed"),
        (struct.pack(">ihhih", 10, 3, 99, 1, -1), "malformed"),
        (struct.pack(">ihhih", 10, 3, 9, 1, 500), "malformed"),
        (struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1), "malformed"),
        (b"".join(encode_request(ProduceRequest(), 9, 1, "a"))[:-6] + b"\xff" * 6, "malformed"),
    ],
)
def test_what_is_no_request_ends_the_connection(tmp_path: Path, data: bytes, reason: str) -> None:
    """With a counted reason; others are served on."""
    with opened(tmp_path) as port, port.client() as good, port.client() as bad:
        before = closed(reason)
        bad.socket.sendall(data)
        assert bad.is_closed()
        assert closed(reason) == before + 1
        assert good.ask(ApiVersionsResponse, ApiVersionsRequest(), 0).error_code == 0


def test_random_bytes_never_harm_the_port(tmp_path: Path) -> None:
    """Mutated requests get a response, or end their connection; the next one is served."""
    rand = random.Random(7)
    requests = [
        b"".join(encode_request(ApiVersionsRequest("a", "1"), 3, 1, "c")),
        b"".join(encode_request(MetadataRequest(topics=None), 12, 1, "c")),
        b"".join(encode_request(MetadataRequest(topics=None), 1, 1, "c")),
        b"".join(encode_request(produce("t", [batch(b"x")]), 9, 1, "c")),
    ]
    with opened(tmp_path) as port:
        for _ in range(400):
            data = bytearray(rand.choice(requests))
            for _ in range(rand.randrange(1, 5)):
                data[rand.randrange(4, len(data))] = rand.randrange(256)
            with port.client() as client:
                client.socket.sendall(data)
        with port.client() as client:
            assert client.ask(ApiVersionsResponse, ApiVersionsRequest(), 0).error_code == 0
        assert closed("internal") == 0


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(tmp_path: Path) -> None:
    """With error 35 and the versions that there are: clients then ask again."""
    with opened(tmp_path) as port, port.client() as client:
        client.socket.sendall(struct.pack(">ihhihb", 11, 18, 77, 5, -1, 0))
        number, response = client.receive(ApiVersionsResponse, 0)
        assert (number, response.error_code) == (5, 35)
        versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        assert versions[18] == (0, 4)
        assert versions[0] == (0, 12), "librdkafka needs versions 0 to 2 to be named"
        assert client.ask(ApiVersionsResponse, ApiVersionsRequest(), 3).error_code == 0


def test_responses_come_in_the_order_of_requests(tmp_path: Path) -> None:
    """Produces in flight share commits, and what follows them waits for its turn."""
    with opened(tmp_path) as port, port.client() as client:
        port.log.create_topic("t", TopicConfig())
        for number in range(40):
            client.send(produce("t", [batch(b"%d" % number)]), 9)
        client.send(MetadataRequest(topics=None), 9)
        offsets = []
        for number in range(40):
            got, response = client.receive(ProduceResponse, 9)
            assert got == number + 1
            offsets.append(response.responses[0].partition_responses[0].base_offset)
        assert offsets == list(range(40)), "in the order of arrival"
        assert client.receive(MetadataResponse, 9)[0] == 41


def test_too_many_connections_are_closed(tmp_path: Path) -> None:
    with opened(tmp_path, connections_max=1) as port, port.client() as first:
        assert first.ask(ApiVersionsResponse, ApiVersionsRequest(), 0).error_code == 0
        with port.client() as second:
            assert second.is_closed()
        assert first.ask(ApiVersionsResponse, ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_silent_client_is_closed(tmp_path: Path, *, is_begun: bool) -> None:
    """Inside a request sooner than between two."""
    settings: dict[str, Any] = {"request_timeout_ms": 100} if is_begun else {"idle_timeout_ms": 100}
    with opened(tmp_path, **settings) as port, port.client() as client:
        client.socket.sendall(struct.pack(">i", 100) if is_begun else b"")
        assert client.is_closed()


def test_large_requests_wait_for_each_other(tmp_path: Path) -> None:
    """At the limit of bytes in flight nothing is refused: it is read later."""
    mib = 2**20
    limits: dict[str, Any] = {"request_bytes_max": mib, "in_flight_bytes_max": mib}
    with opened(tmp_path, **limits) as port:
        port.log.create_topic("t", TopicConfig())
        clients = [port.client() for _ in range(4)]
        request = produce("t", [batch(bytes(900_000))])
        for client in clients:
            client.send(request, 9)
        offsets = {
            client.receive(ProduceResponse, 9)[1].responses[0].partition_responses[0].base_offset
            for client in clients
        }
        assert offsets == {0, 1, 2, 3}
        for client in clients:
            client.socket.close()


def batch(value: bytes) -> bytes:
    return encode_batch([Record(offset=0, timestamp_ms=1, key=b"k", value=value)])


def produce(topic: str, batches: list[bytes], acks: int = -1) -> ProduceRequest:
    """Return a request with one batch for each of the first partitions."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[
                    ProduceRequest.PartitionProduceData(index, records)
                    for index, records in enumerate(batches)
                ],
            )
        ],
    )
