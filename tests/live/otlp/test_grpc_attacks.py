"""Attacks on OTLP/gRPC with bytes that no proper client sends, while another client is served."""

from __future__ import annotations

import gzip
import json
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from isal import isal_zlib

from frazil.disk import RealDisk
from frazil.log import Log
from frazil.model import MiB, Rand, Signal, SystemClock
from tests.conformance.cases import log, logs
from tests.live.otlp.http2 import (
    ACK,
    CANCEL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_BYTES_MAX,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    Connection,
    connected,
    field,
    frame,
    head,
    message,
)

ROOT = Path(__file__).parents[3]

SERVE = """
import json, sys
from pathlib import Path
from tests.ingest.grpc_edge import grpc_edge

with grpc_edge(Path(sys.argv[1]), **json.loads(sys.argv[2])) as edge:
    print(edge.otlp.port, flush=True)
    sys.stdin.read()
"""

WAIT_S = 60
PAUSE_S = 0.05
"""Between two calls of the good client."""

MEMORY_BYTES_MAX = 64 * MiB
CPU_S_MAX = 5
"""The most an attack may cost. Measured: a few MiB and tenths of a second."""

BODY_TIMEOUT_MS = 500
IMPOSSIBLE_PATH = b"/\xff\xfe/Export"
PINGS = SETTINGS_FRAMES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A server process."""

    port: int
    pid: int

    @property
    def memory_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def memory_bytes_peak(self) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the kernel tells no peak")

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def node(folder: Path, **settings: Any) -> Iterator[Node]:
    settings = {"body_timeout_ms": BODY_TIMEOUT_MS, **settings}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(folder), json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield Node(port=port, pid=process.pid)
        process.communicate("", timeout=WAIT_S)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


class GoodClient:
    """Sends all the time on its own connection, and remembers what was acknowledged."""

    def __init__(self, port: int) -> None:
        self.acknowledged: list[bytes] = []
        self.refusals: list[grpc.RpcError] = []
        self._channel = grpc.insecure_channel(
            f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)]
        )
        self._call = self._channel.unary_unary(Signal.LOGS.method)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send_all)

    def send(self) -> None:
        body = logs(log(len(self.acknowledged)))
        self._call(body, timeout=WAIT_S)
        self.acknowledged.append(body)

    def _send_all(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            try:
                self.send()
            except grpc.RpcError as error:
                self.refusals.append(error)

    def __enter__(self) -> GoodClient:
        self.send()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self.send()
        self._channel.close()


def stored(folder: Path) -> list[bytes]:
    """Return what the log holds after the node has ended."""
    with Log.open(RealDisk(folder), clock=SystemClock(), rand=Rand()) as opened:
        reader = opened.reader(Signal.LOGS.topic, "earliest")
        values = []
        while batches := reader.read():
            values += [record.value or b"" for batch in batches for record in batch.records()]
        reader.close()
    return values


def send_until_cut_off(connection: Connection, frames: Iterator[bytes]) -> None:
    """Send everything unless the server closes first. Responses are dropped."""
    reader = threading.Thread(target=lambda: [None for _ in connection.frames()])
    reader.start()
    try:
        for some in frames:
            connection.send(some)
    except (ConnectionError, TimeoutError):
        pass
    finally:
        connection.hang_up()
        reader.join(WAIT_S)
        assert not reader.is_alive()


def rapid_reset(port: int) -> None:
    """Calls that are cancelled at once (CVE-2023-44487)."""
    with connected(port) as connection:
        connection.greet()
        send_until_cut_off(
            connection,
            (
                frame(HEADERS, END_HEADERS, stream, head()) + frame(RST_STREAM, 0, stream, CANCEL)
                for stream in range(1, 10_001, 2)
            ),
        )


def reset_while_served(port: int) -> None:
    """Complete calls that are cancelled while they are answered."""
    batches = [range(first, first + 40, 2) for first in range(1, 4_001, 40)]
    call = message(b"\xff")  # malformed, so that nothing is stored
    with connected(port) as connection:
        connection.greet()
        send_until_cut_off(
            connection,
            (
                b"".join(
                    frame(HEADERS, END_HEADERS, stream, head())
                    + frame(DATA, END_STREAM, stream, call)
                    for stream in batch
                )
                + b"".join(frame(RST_STREAM, 0, stream, CANCEL) for stream in batch)
                for batch in batches
            ),
        )


def continuation_flood(port: int) -> None:
    """Headers without an end (CVE-2024-27316)."""
    with connected(port) as connection:
        connection.greet()
        connection.send(frame(HEADERS, 0, 1, head()))
        send_until_cut_off(
            connection,
            (frame(CONTINUATION, 0, 1, field(b"x%d" % n, b"y" * 1000)) for n in range(20_000)),
        )


def empty_continuation_flood(port: int) -> None:
    """Frames that carry nothing and end nothing."""
    with connected(port) as connection:
        connection.greet()
        connection.send(frame(HEADERS, 0, 1, head()))
        send_until_cut_off(connection, (frame(CONTINUATION, 0, 1) * 100 for _ in range(1000)))


def ping_flood(port: int) -> None:
    """Each needs a response (CVE-2019-9512)."""
    with connected(port) as connection:
        connection.greet()
        pings = frame(PING, 0, 0, b"12345678") * 1000
        send_until_cut_off(connection, (pings for _ in range(PINGS // 1000)))


def unread_ping_flood(port: int) -> None:
    """The same, from a client that never reads."""
    with connected(port, timeout_s=2) as connection:
        connection.greet()
        pings = frame(PING, 0, 0, b"12345678") * 1000
        try:
            for _ in range(PINGS // 1000):
                connection.send(pings)
        except (ConnectionError, TimeoutError):
            pass


def settings_flood(port: int) -> None:
    """Each needs an acknowledgement (CVE-2019-9515)."""
    with connected(port) as connection:
        connection.greet()
        settings = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65_535)) * 1000
        send_until_cut_off(connection, (settings for _ in range(SETTINGS_FRAMES // 1000)))


def giant_header(port: int) -> None:
    """A header that claims two gibibytes and begins to send them."""
    claim = b"\x00\x01x\x7f\x80\xff\xff\xff\x07"
    with connected(port) as connection:
        connection.greet()
        connection.send(frame(HEADERS, 0, 1, head() + claim + b"y" * 1000))
        more = frame(CONTINUATION, 0, 1, b"y" * FRAME_BYTES_MAX)
        send_until_cut_off(connection, (more for _ in range(5_000)))


def header_bomb(port: int) -> None:
    """A long header in the table, repeated thousands of times by one byte each."""
    indexed = b"\x40" + field(b"x", b"y" * 3900)[1:]
    with connected(port) as connection:
        connection.greet()
        connection.call(1, head() + indexed, message(b"\xff"))
        send_until_cut_off(
            connection,
            (
                frame(HEADERS, END_HEADERS, stream, head() + b"\xbe" * 10_000)
                for stream in range(3, 1003, 2)
            ),
        )


def many_streams(port: int) -> None:
    """Ten thousand unfinished calls on one connection."""
    with connected(port) as connection:
        connection.greet()
        send_until_cut_off(
            connection,
            (frame(HEADERS, END_HEADERS, stream, head()) for stream in range(1, 20_001, 2)),
        )


def slow_bodies(port: int) -> None:
    """Almost requests_max calls, each with only one byte."""
    streams = range(1, 181, 2)
    with ExitStack() as opened:
        connections = [opened.enter_context(connected(port)) for _ in range(10)]
        for connection in connections:
            connection.greet()
            for stream in streams:
                connection.call(stream, head(), b"\x00", ends=False)
        for connection in connections:
            assert b"did not arrive within" in connection.await_end(streams[-1])


def claimed_lengths(port: int) -> None:
    """Messages that announce a length and never arrive."""
    with connected(port) as connection:
        connection.greet()
        for stream in range(1, 101, 2):
            connection.call(stream, head(), struct.pack(">?I", False, 2**32 - 1), ends=False)
        assert b"grpc-status\x018" in connection.await_end(99)  # RESOURCE_EXHAUSTED


def no_greeting(port: int) -> None:
    """Connections without a complete preface; they are closed after a timeout."""
    with ExitStack() as opened:
        connections = [opened.enter_context(connected(port)) for _ in range(100)]
        for connection in connections[::2]:
            connection.send(PREFACE[:5])
        for connection in connections:
            assert [found.kind for found in connection.frames()][-1:] in ([GOAWAY], [])


def answers_unread(port: int) -> None:
    """Complete calls from a client that never reads a response."""
    with connected(port) as connection:
        connection.send(PREFACE, frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)))
        connection.send(frame(SETTINGS, ACK))
        for stream in range(1, 201, 2):
            connection.call(stream, head(), message(b""))


def impossible_names(port: int) -> None:
    """A path and headers that are not text."""
    path = field(b":path", Signal.LOGS.method.encode())
    for headers in (
        head().replace(path, field(b":path", IMPOSSIBLE_PATH)),
        head(Signal.LOGS.method, (b"x", b"\xff\xfe")),
        head(Signal.LOGS.method, (b"\xff", b"x")),
        head(Signal.LOGS.method, (b"authorization", b"Bearer \xff\xfe")),
        head(Signal.LOGS.method, (b"x-bin", b"!")),
    ):
        with connected(port) as connection:
            connection.greet()
            connection.call(1, headers, message(b"\xff"))
            connection.await_end(1)


def nonsense(port: int) -> None:
    """Frames of any kind with random content."""
    chance = random.Random(20_260_101)
    for _ in range(300):
        with connected(port) as connection:
            connection.greet()
            try:
                for _ in range(chance.randrange(1, 8)):
                    stream = chance.choice([0, 1, 1, 3, 2, 2**31 - 1])
                    payload = chance.randbytes(chance.randrange(64))
                    if chance.random() < 0.3:
                        payload = head() + payload[:8]
                    connection.send(
                        frame(chance.randrange(12), chance.randrange(256), stream, payload)
                    )
            except ConnectionError:
                pass


ATTACKS: list[Callable[[int], None]] = [
    rapid_reset,
    reset_while_served,
    continuation_flood,
    empty_continuation_flood,
    ping_flood,
    unread_ping_flood,
    settings_flood,
    giant_header,
    header_bomb,
    many_streams,
    slow_bodies,
    claimed_lengths,
    no_greeting,
    answers_unread,
    impossible_names,
    nonsense,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_does_not_affect_other_clients(
    tmp_path: Path, attack: Callable[[int], None]
) -> None:
    """It costs little and stores nothing."""
    with node(tmp_path) as served:
        with GoodClient(served.port) as client:
            before_bytes, before_s = served.memory_bytes, served.cpu_s
            attack(served.port)
        assert client.refusals == []
        assert served.memory_bytes - before_bytes < MEMORY_BYTES_MAX
        assert served.cpu_s - before_s < CPU_S_MAX
    assert stored(tmp_path) == client.acknowledged


def test_a_connection_above_the_limit_is_closed(tmp_path: Path) -> None:
    """Those within the limit are served."""
    with node(tmp_path, connections_max=20, body_timeout_ms=30_000) as served:
        with GoodClient(served.port) as client, ExitStack() as opened:
            connections = [opened.enter_context(connected(served.port)) for _ in range(25)]
            for connection in connections:
                connection.greet()
            first_frames = [next(connection.frames(), None) for connection in connections]
            # 26 connections, with that of the good client.
            assert sum(first is None for first in first_frames) == 6
        assert client.refusals == []
    assert stored(tmp_path) == client.acknowledged


def test_slow_calls_do_not_lock_out_other_clients(tmp_path: Path) -> None:
    """Even when all slots are taken by slow calls with a distant timeout."""
    with node(tmp_path, requests_max=50, body_timeout_ms=600_000) as served:
        with GoodClient(served.port) as client, connected(served.port) as connection:
            connection.greet()
            for stream in range(1, 161, 2):
                connection.call(stream, head(), b"\x00", ends=False)
            assert b"arrives slowly" in connection.await_end(1)
            count = len(client.acknowledged)
            for _ in range(int(WAIT_S / PAUSE_S)):
                if len(client.acknowledged) > count + 5:
                    break
                threading.Event().wait(PAUSE_S)
        assert len(client.acknowledged) > count + 5
        assert all(error.code() == grpc.StatusCode.UNAVAILABLE for error in client.refusals)
    assert stored(tmp_path) == client.acknowledged


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Data of a call that is refused, and the expected message."""

    data: bytes
    says: bytes
    encoding: bytes = b"identity"
    ends: bool = True
    timeout_ms: int = 30_000


LIMIT = 8 * MiB
ZEROS = bytes(256 * MiB)
REFUSED = {
    "gzip bomb": Refused(
        data=message(isal_zlib.compress(ZEROS, 3, wbits=31), is_compressed=True),
        says=b"once decompressed",
        encoding=b"gzip",
    ),
    "deflate bomb": Refused(
        data=message(isal_zlib.compress(ZEROS, 3, wbits=15), is_compressed=True),
        says=b"once decompressed",
        encoding=b"deflate",
    ),
    "damaged gzip": Refused(
        data=message(gzip.compress(ZEROS[: LIMIT // 2], 1)[:-1], is_compressed=True),
        says=b"is truncated",
        encoding=b"gzip",
    ),
    "malformed": Refused(data=message(bytes(LIMIT)), says=b"not an OTLP request"),
    "never ended": Refused(
        data=message(bytes(LIMIT)), says=b"did not arrive", ends=False, timeout_ms=200
    ),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
def test_refused_calls_release_their_memory(tmp_path: Path, refused: Refused) -> None:
    """However often they come, the peak stays near the limit of one."""
    headers = head(Signal.LOGS.method, (b"grpc-encoding", refused.encoding))
    settings = {"body_bytes_max": LIMIT, "in_flight_bytes_max": 4 * LIMIT}
    with node(tmp_path, body_timeout_ms=refused.timeout_ms, **settings) as served:
        with GoodClient(served.port) as client:
            before_bytes = served.memory_bytes_peak
            for _ in range(16):  # twice the memory limit
                with connected(served.port) as connection:
                    connection.greet()
                    connection.call(1, headers)
                    answer = connection.upload(1, refused.data, ends=refused.ends)
                assert refused.says in answer
            assert served.memory_bytes_peak - before_bytes < MEMORY_BYTES_MAX
        assert client.refusals == []
    assert stored(tmp_path) == client.acknowledged
