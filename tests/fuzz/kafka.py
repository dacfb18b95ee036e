"""Sends malformed and hostile requests to an open Kafka port, over loopback.

Every API and version that the port knows is in the corpus, with random fields: most frames are
mutated, some are as they are and only senseless. Between them come sizes of gigabytes, other
protocols, batches that expand to gigabytes, clients that never end a frame or never read, and
patterns that take other engines forever.

Meanwhile an honest producer writes. Nothing may fail inside of the port, every batch of the honest
one is acknowledged and is there at the end, and memory stays bounded.
"""

from __future__ import annotations

import logging
import resource
import socket
import struct
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from google_crc32c import value as crc32c

from frazil.errors import Malformed
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.apis import APIS
from frazil.kafka.wire.codec import encode
from frazil.kafka.wire.headers import decode_request, decode_request_header
from frazil.kafka.wire.messages.list_transactions import ListTransactionsRequest
from frazil.kafka.wire.messages.produce import ProduceRequest, ProduceResponse
from frazil.log import Compression, Record, encode_batch
from frazil.model import MiB
from frazil.settings import GroupsConfig, LogConfig, TopicConfig
from tests.fuzz.kafka_wire import examples, mutate
from tests.kafka.port.opened import OpenedPort, opened

DISAGREEMENTS_MAX = 10
FRAMES_PER_CONNECTION = 64
"""At most: what cannot be a request ends the connection."""
SENTINEL = 0x7EADBEEF
"""Correlation id of the last request of a connection."""
ANSWER_S_MAX = 0.25
"""How long the last response is waited for: a fetch or a join before it may wait longer."""
CONNECTIONS = 16
"""At a time."""
PROBE_EVERY = 10
"""Rounds between two honest batches."""
RSS_BYTES_MAX = 768 * MiB
"""By which this process, client and port together, may grow: four threads may unpack a bomb each
at a time."""
SLOW_MAX = 20
"""Clients at a time that never end a frame, or never read."""
BOMB_BYTES = 60 * MiB
"""What the other bombs expand to, which is just allowed."""
GZIP_BOMB_BYTES = 256 * MiB
"""More than the port unpacks."""
PATTERNS = (
    "(a+)+$",
    "(" * 500 + "a" + ")*" * 500,
    "(a{1000}){1000}",
    "[",
    "(?P<n>a)\\1",
    "a" * 9999,
)

Entry = tuple[int, int, bytes]
"""API key, version, message."""


def run(count: int, seed: int) -> dict[str, object]:
    """Send `count` frames. Same seed, same frames."""
    rand = Random(seed)
    failures: list[str] = []
    handler = _Failures(failures)
    logger = logging.getLogger("frazil.kafka")
    logger.addHandler(handler)
    log_config = LogConfig(segment_bytes_max=MiB, batch_bytes_max=MiB, disk_bytes_max=256 * MiB)
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(
                Path(folder),
                log_config=log_config,
                groups=GroupsConfig(groups_max=200, members_max=50, offsets_max=1000),
                request_timeout_ms=3_000,
                request_bytes_max=2 * MiB,
                in_flight_bytes_max=16 * MiB,
            ) as port,
        ):
            counts = _Fuzzer(port, rand, failures).run(count)
    finally:
        logger.removeHandler(handler)
    return {**counts, "disagreements": failures[:DISAGREEMENTS_MAX]}


class _Failures(logging.Handler):
    """Takes note of what the port logs as an error of its own."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._found.append(f"{record.getMessage()}: {error!r}")


class _Fuzzer:
    """Owned by one thread; the port has its own."""

    def __init__(self, port: OpenedPort, rand: Random, failures: list[str]) -> None:
        self._port = port
        self._rand = rand
        self._failures = failures
        self._counts: Counter[str] = Counter()
        self._slow: list[socket.socket] = []
        for topic in ("honest", "orders", "a"):
            port.log.create_topic(topic, TopicConfig(partitions=2))
        self._honest = port.client()
        self._honest_count = 0
        self._corpus = _corpus(rand)
        self._bombs = [bytes(_bomb(kind)) for kind in Compression if kind is not Compression.NONE]

    def run(self, count: int) -> dict[str, int]:
        self._begin_bytes = _rss_bytes()
        rounds = 0
        while self._counts["frames"] < count:
            rounds += 1
            self._round()
            if rounds % PROBE_EVERY == 0:
                self._probe()
                self._be_slow()
        self._probe()
        for each in self._slow:
            each.close()
        self._check_end()
        return dict(self._counts)

    def _round(self) -> None:
        """Send frames over some connections at once, then wait until the port has answered or
        given up."""
        clients = []
        for _ in range(CONNECTIONS):
            client = socket.create_connection(("127.0.0.1", self._port.port))
            # Reset it at the end: the port need not wait for what nobody reads.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.settimeout(ANSWER_S_MAX)
            clients.append(client)
            with suppress(OSError):  # the port closes on what is no request
                client.sendall(self._frames())
        end_s = time.monotonic() + ANSWER_S_MAX
        for client in clients:
            client.settimeout(max(0.001, end_s - time.monotonic()))
            outcome = "answered"
            try:
                outcome = "answered" if _until_sentinel(client) else "closed"
            except TimeoutError:
                outcome = "waiting"
            except OSError:
                outcome = "closed"
            self._counts[outcome] += 1
            client.close()

    def _frames(self) -> bytes:
        """Return frames up to the first that is no request: the port reads nothing after it."""
        frames = []
        for number in range(self._rand.choice((1, 8, FRAMES_PER_CONNECTION))):
            frame, is_certain_end = self._frame(number)
            frames.append(frame)
            if is_certain_end or not _is_request(frame):
                self._counts["malformed"] += 1
                break
        self._counts["frames"] += len(frames)
        frames.append(_framed(struct.pack(">hhih", 18, 0, SENTINEL, -1)))
        return b"".join(frames)

    def _frame(self, number: int) -> tuple[bytes, bool]:
        """Return a frame, and whether the port cannot read on after it."""
        rand = self._rand
        kind = rand.random()
        if kind < 0.004:
            return rand.choice(OTHER_PROTOCOLS), True
        if kind < 0.006:
            size = rand.choice((-1, 0, 7, 2**31 - 1, -(2**31), 3 * MiB))
            return struct.pack(">i", size) + rand.randbytes(20), True
        if kind < 0.0065:
            self._counts["bombs"] += 1
            return self._produce(rand.choice(self._bombs), number), False
        if kind < 0.008:
            pattern = rand.choice(PATTERNS)
            request = ListTransactionsRequest(transactional_id_pattern=pattern)
            return _request(66, 2, number, b"".join(encode(request, 2))), False
        if kind < 0.2:
            return self._produce(_hostile_batch(rand), number), False
        key, version, message = rand.choice(self._corpus)
        if kind < 0.5:
            message = mutate(message, rand.choice(self._corpus)[2], rand)
        if kind < 0.22:
            version = rand.choice((-1, 99, version + 1))
        return _request(key, version, number, message), False

    def _produce(self, batch: bytes, number: int) -> bytes:
        data = ProduceRequest.PartitionProduceData(self._rand.randrange(3), batch)
        topic = ProduceRequest.TopicProduceData("orders", partition_data=[data])
        acks = self._rand.choice((-1, -1, 1, 0))
        request = ProduceRequest(acks=acks, timeout_ms=10, topic_data=[topic])
        return _request(0, 9, number, b"".join(encode(request, 9)))

    def _be_slow(self) -> None:
        """Open clients that stop in the middle, or ask for much and never read."""
        client = socket.create_connection(("127.0.0.1", self._port.port))
        client.setblocking(False)
        if self._rand.random() < 0.5:
            client.send(struct.pack(">i", self._rand.choice((100, MiB, 2 * MiB))) + b"\0" * 9)
        else:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            asked = _request(3, 0, 1, struct.pack(">i", 0))
            with suppress(BlockingIOError):
                for _ in range(300):
                    client.send(asked)
        self._slow.append(client)
        self._counts["slow"] += 1
        if len(self._slow) > SLOW_MAX:
            self._slow.pop(0).close()

    def _probe(self) -> None:
        """Write an honest record, and look at the memory."""
        record = Record(offset=0, timestamp_ms=1, key=None, value=b"%d" % self._honest_count)
        data = ProduceRequest.PartitionProduceData(0, encode_batch([record]))
        topic = ProduceRequest.TopicProduceData("honest", partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        begin = time.monotonic()
        try:
            answer = self._honest.ask(ProduceResponse, request, 9)
        except OSError as error:
            self._failures.append(f"an honest batch got no answer: {error!r}")
            self._honest = self._port.client()
            return
        result = answer.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # A fuzzed DeleteTopics may hit any name; the honest topic begins anew then.
            self._port.log.create_topic("honest", TopicConfig(partitions=2))
            self._honest_count = 0
            self._counts["deleted"] += 1
            return
        if result.error_code != ErrorCode.NONE or result.base_offset != self._honest_count:
            self._failures.append(f"an honest batch was answered {result}")
        self._honest_count = result.base_offset + 1
        self._counts["honest"] += 1
        took_ms = int(1000 * (time.monotonic() - begin))
        self._counts["honest_ms"] += took_ms
        grown_bytes = _rss_bytes() - self._begin_bytes
        if grown_bytes > RSS_BYTES_MAX:
            self._failures.append(f"{grown_bytes // MiB} MiB more memory than at the start")

    def _check_end(self) -> None:
        """Everything that the honest producer was told is there."""
        self._honest.socket.close()
        found = []
        reader = self._port.log.reader("honest", "earliest")
        while batches := reader.read():
            found += [record.value for batch in batches for record in batch.records()]
        reader.close()
        expected = [b"%d" % number for number in range(self._honest_count)]
        if found != expected:
            self._failures.append(f"{len(found)} honest records of {len(expected)}")


OTHER_PROTOCOLS = (
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    bytes.fromhex("16030100c8010000c40303") + bytes(80),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"\0" * 64,
)


def _rss_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def _corpus(rand: Random) -> list[Entry]:
    """Return messages of every API and version that the codecs have."""
    found = [
        (kind.VERSIONS.api_key, version, data)
        for kind, version, data in examples(rand)
        if kind.VERSIONS.name.endswith("Request") and kind.VERSIONS.api_key in APIS
    ]
    return found or [(key, 0, b"") for key in APIS]  # without Kafka's jars there are no examples


def _request(key: int, version: int, number: int, message: bytes) -> bytes:
    api = APIS.get(key)
    head = struct.pack(">hhih", key, version, number, 1) + b"f"
    if api is not None and version in api.flexible:
        head += b"\0"
    return _framed(head + message)


def _is_request(frame: bytes) -> bool:
    """Return whether the port reads on after a frame."""
    try:
        header = decode_request_header(frame[4:])
        decode_request(header, frame[4:])
    except Malformed:
        return False
    return True


def _framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def _until_sentinel(client: socket.socket) -> bool:
    """Read responses up to the last one. Returns whether it came."""
    data = b""
    while True:
        while len(data) >= 8:
            size, correlation_id = struct.unpack_from(">ii", data)
            if correlation_id == SENTINEL:
                return True
            if len(data) < 4 + size:
                break
            data = data[4 + size :]
        more = client.recv(1 << 18)
        if not more:
            return False
        data += more


def _bomb(compression: Compression) -> bytearray:
    """Return a batch of few bytes that expands to many, with a checksum that is right."""
    record = Record(offset=0, timestamp_ms=1, key=None, value=bytes(BOMB_BYTES))
    if compression is Compression.GZIP:
        small = encode_batch([Record(offset=0, timestamp_ms=1, key=None, value=b"")])
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        body = packer.compress(bytes(GZIP_BOMB_BYTES)) + packer.flush()
        data = bytearray(small[:61] + body)
        data[21:23] = struct.pack(">h", int(compression))
        data[8:12] = struct.pack(">i", len(data) - 12)
        return _sealed(data)
    return bytearray(encode_batch([record], compression=compression))


def _hostile_batch(rand: Random) -> bytes:
    """Return a batch with wrong counts, lengths or ids, and in most cases the right checksum."""
    records = [
        Record(offset=at, timestamp_ms=1, key=b"k", value=rand.randbytes(rand.choice((0, 9, 300))))
        for at in range(rand.choice((1, 2, 9)))
    ]
    has_producer = rand.random() < 0.5
    data = bytearray(
        encode_batch(
            records,
            compression=rand.choice(list(Compression)),
            producer_id=rand.choice((0, 5, 2**62)) if has_producer else -1,
            producer_epoch=rand.choice((0, 3, 32_767)) if has_producer else -1,
            base_sequence=rand.choice((0, 1, 2**31 - 1)) if has_producer else -1,
            transactional=has_producer and rand.random() < 0.3,
        )
    )
    if rand.random() < 0.15:
        return bytes(data)
    for _ in range(rand.choice((1, 2, 4))):
        rand.choice(SPOILS)(data, rand)
    return bytes(_sealed(data) if rand.random() < 0.8 else data)


def _sealed(data: bytearray) -> bytearray:
    data[17:21] = struct.pack(">I", crc32c(bytes(data[21:])))
    return data


def _spoil_byte(data: bytearray, rand: Random) -> None:
    data[rand.randrange(len(data))] = rand.randrange(256)


def _spoil_count(data: bytearray, rand: Random) -> None:
    data[57:61] = struct.pack(">i", rand.choice((-1, 0, 1, 2**31 - 1, 1000)))


def _spoil_delta(data: bytearray, rand: Random) -> None:
    data[23:27] = struct.pack(">i", rand.choice((-1, 0, 5, 2**31 - 1)))


def _spoil_attributes(data: bytearray, rand: Random) -> None:
    data[21:23] = struct.pack(
        ">H", rand.choice((0x20, 0x10, 0x07, 0x8, 0xFFFF, rand.randrange(64)))
    )


def _spoil_end(data: bytearray, rand: Random) -> None:
    del data[max(61, len(data) - rand.randrange(1, 40)) :]
    data[8:12] = struct.pack(">i", len(data) - 12)


SPOILS: tuple[Callable[[bytearray, Random], None], ...] = (
    *(_spoil_byte, _spoil_byte, _spoil_count, _spoil_delta, _spoil_attributes, _spoil_end),
)
