"""Cost of many clients of the Kafka port: `python -m bench.kafka_crowd [--members N]`.

Starts a node, makes 1,000 idle partitions, opens 1,000 connections, and lets 5,000 members join one
group. Prints the memory of the node after each step, how long the steps take, and how long it takes
to start again with all of that.
"""

from __future__ import annotations

import argparse
import resource
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.headers import decode_response, encode_request
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from frazil.kafka.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from frazil.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from frazil.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from frazil.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from frazil.kafka.wire.schema import KafkaMessage
from tests.clients.node import Node

R = TypeVar("R", bound=KafkaMessage)

TOPIC_PARTITIONS = 100
SETTINGS = """
[lake]
enabled = false
[kafka.groups]
initial_rebalance_delay_ms = 3000
"""
TIMEOUT_S = 120
STEADY_BYTES = 2_000_000
JOIN_VERSION = 3
"""The last one that lets a member in without a second request."""


@contextmanager
def timed(what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    print(f"{what:44} {(time.perf_counter() - begin) * 1000:9.0f} ms")


def memory_bytes(pid: int) -> int:
    """Return the memory of a process and all it has started; what they share counts once."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        parents[int(path.parent.name)] = int(words[1])
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    total = 0
    for each in family:
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024


def steady_bytes(pid: int) -> int:
    """Return the memory once it does not change any more: a node prepares its workers first."""
    before = 0
    while abs((now := memory_bytes(pid)) - before) > STEADY_BYTES:
        before = now
        time.sleep(2.0)
    return now


def print_memory(node: Node, before: int) -> int:
    used = steady_bytes(node.process.pid)
    print(f"{'  memory of the node':44} {used / 1e6:9.1f} MB, {(used - before) / 1e6:+.1f} MB")
    return used


class Connection:
    """A client's connection. Requests and responses can be sent and read apart."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._number = 0

    def send(self, request: KafkaMessage, version: int) -> None:
        self._number += 1
        self._socket.sendall(b"".join(encode_request(request, version, self._number, "crowd")))

    def receive(self, kind: type[R], version: int) -> R:
        size = int.from_bytes(self._bytes(4), "big")
        return decode_response(kind, version, self._bytes(size))[1]

    def _bytes(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            assert more, "closed by the node"
            data += more
        return bytes(data)

    def close(self) -> None:
        self._socket.close()


def create_partitions(connection: Connection, partitions: int) -> None:
    for number in range(partitions // TOPIC_PARTITIONS):
        topic = CreateTopicsRequest.CreatableTopic(f"idle-{number}", TOPIC_PARTITIONS, -1)
        connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5)
        response = connection.receive(CreateTopicsResponse, 5)
        assert response.topics[0].error_code == ErrorCode.NONE, response


def join(connections: list[Connection], members: int) -> list[tuple[Connection, str, int]]:
    """Let members join one group, several over each connection. Returns ids and generation."""
    connections[0].send(FindCoordinatorRequest(key="crowd"), 2)
    connections[0].receive(FindCoordinatorResponse, 2)
    request = JoinGroupRequest(
        group_id="crowd",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol("range", b"\0" * 30)],
    )
    for number in range(members):
        connections[number % len(connections)].send(request, JOIN_VERSION)
    joined = []
    leader, everyone = "", []
    for number in range(members):
        connection = connections[number % len(connections)]
        response = connection.receive(JoinGroupResponse, JOIN_VERSION)
        assert response.error_code == ErrorCode.NONE, response.error_code
        joined.append((connection, response.member_id, response.generation_id))
        if response.members:
            leader, everyone = response.leader, [each.member_id for each in response.members]
    for connection, member_id, generation in joined:
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(each, b"\0" * 20)
            for each in (everyone if member_id == leader else ())
        ]
        connection.send(
            SyncGroupRequest(
                group_id="crowd",
                generation_id=generation,
                member_id=member_id,
                assignments=assignments,
            ),
            3,
        )
    for connection, _, _ in joined:
        synced = connection.receive(SyncGroupResponse, 3)
        assert synced.error_code == ErrorCode.NONE, synced.error_code
    return joined


def measure(folder: Path, partitions: int, connections: int, members: int) -> None:
    settings = folder / "frazil.toml"
    settings.write_text(SETTINGS)
    with timed("start, empty"):
        node = Node(folder / "data", "--config", str(settings))
    with node:
        before = print_memory(node, 0)
        first = Connection(node.kafka_port)
        with timed(f"create {partitions} partitions"):
            create_partitions(first, partitions)
        before = print_memory(node, before)
        with timed(f"open {connections} connections"):
            opened = [Connection(node.kafka_port) for _ in range(connections)]
            for each in opened:
                each.send(ApiVersionsRequest(), 0)
            for each in opened:
                each.receive(ApiVersionsResponse, 0)
        before = print_memory(node, before)
        with timed(f"{members} members join a group"):
            joined = join(opened, members)
        print_memory(node, before)
        with timed("  one heartbeat of each"):
            for connection, member_id, generation in joined:
                beat = HeartbeatRequest(
                    group_id="crowd", generation_id=generation, member_id=member_id
                )
                connection.send(beat, 3)
            for connection, _, _ in joined:
                assert connection.receive(HeartbeatResponse, 3).error_code == ErrorCode.NONE
        node.kill()
        for each in (first, *opened):
            each.close()
        with timed("start again after kill -9"):
            node.start()
        print_memory(node, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--members", type=int, default=5000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(Path(folder), options.partitions, options.connections, options.members)


if __name__ == "__main__":
    main()
