"""librdkafka and we read each other's batches, for each compression.

The broker here is a stand-in that knows five requests: it keeps the bytes librdkafka produces and
hands out the bytes we encoded, so nothing but the two record codecs is on trial.
"""

from __future__ import annotations

import socketserver
import struct
import threading

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from frazil.log.format.batch import encode_batch, read_records
from frazil.log.format.compression import Compression
from frazil.log.format.record import Record
from frazil.log.produce import validate_produced

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, API_VERSIONS = 0, 1, 3, 10, 18
VERSIONS = {PRODUCE: 7, FETCH: 11, METADATA: 2, FIND_COORDINATOR: 0, API_VERSIONS: 0}
"""One version of each, from before the protocol's compact encoding. librdkafka takes
FIND_COORDINATOR as a sign that the broker supports lz4."""
COORDINATOR_NOT_AVAILABLE, UNSUPPORTED_VERSION = 15, 35
TOPIC, END = "t", 300
SENT = [
    Record(
        offset=offset,
        timestamp_ms=1_700_000_000_000 + offset,
        key=b"key-%d" % offset if offset % 3 else None,
        value=b"%d," % offset * 200 if offset % 5 else None,
        headers=(("trace", b"%d" % offset), ("nothing", None))[: offset % 3],
    )
    for offset in range(END)
]
ONE_TOPIC = struct.pack(">ih1s", 1, 1, TOPIC.encode())


class Broker(socketserver.ThreadingTCPServer):
    """Owned by the test; one daemon thread per connection of the client."""

    daemon_threads = True

    def __init__(self, stored: bytes = b"") -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.stored = stored
        self.produced: list[bytes] = []
        self.address = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()

    def answer(self, kind: int, version: int, body: bytes) -> bytes:
        if kind == API_VERSIONS:
            # An unknown version gets the old response, which lists the supported versions.
            error = 0 if version == VERSIONS[API_VERSIONS] else UNSUPPORTED_VERSION
            ranges = b"".join(struct.pack(">hhh", k, 0, v) for k, v in VERSIONS.items())
            return struct.pack(">hi", error, len(VERSIONS)) + ranges
        assert version == VERSIONS[kind]
        if kind == METADATA:
            host, port = b"127.0.0.1", int(self.server_address[1])
            brokers = struct.pack(f">iih{len(host)}sih", 1, 0, len(host), host, port, -1)
            topics = struct.pack(">hiihh1s?", -1, 0, 1, 0, 1, TOPIC.encode(), False)
            return brokers + topics + struct.pack(">ihiiiiii", 1, 0, 0, 0, 1, 0, 1, 0)
        if kind == FIND_COORDINATOR:
            return struct.pack(">hihi", COORDINATOR_NOT_AVAILABLE, -1, 0, -1)
        if kind == PRODUCE:
            # No transactional id, acks, timeout, one topic of one partition, then its records.
            position = struct.calcsize(">hhi") + len(ONE_TOPIC) + struct.calcsize(">iii")
            self.produced.append(body[position:])
            return ONE_TOPIC + struct.pack(">iihqqqi", 1, 0, 0, 0, -1, 0, 0)
        partition = struct.pack(">iihqqqiii", 1, 0, 0, END, END, 0, -1, -1, len(self.stored))
        return struct.pack(">ihi", 0, 0, 0) + ONE_TOPIC + partition + self.stored


class Connection(socketserver.StreamRequestHandler):
    """Length, kind, version, correlation, client's name; then the body."""

    server: Broker

    def handle(self) -> None:
        while len(prefix := self.rfile.read(4)) == 4:
            request = self.rfile.read(*struct.unpack(">i", prefix))
            kind, version, correlation, name_bytes = struct.unpack_from(">hhih", request)
            answer = self.server.answer(kind, version, request[10 + name_bytes :])
            self.wfile.write(struct.pack(">ii", len(answer) + 4, correlation) + answer)


every_compression = pytest.mark.parametrize("compression", Compression, ids=lambda c: c.name)


@every_compression
def test_batches_of_librdkafka_are_read(compression: Compression) -> None:
    """Accepted unchanged, and read as what was sent."""
    with Broker() as broker:
        # Nothing is sent before the flush, so all records share one large batch.
        settings = {"compression.type": compression.name.lower(), "linger.ms": 60_000}
        producer = Producer({"bootstrap.servers": broker.address, **settings})
        for r in SENT:
            producer.produce(TOPIC, r.value, r.key, timestamp=r.timestamp_ms, headers=[*r.headers])
        assert producer.flush(30) == 0
    (data,) = broker.produced
    header, kept, _ = validate_produced(data)
    assert (header.compression, kept, read_records(data)) == (compression, data, SENT)


@every_compression
def test_librdkafka_reads_our_batches(compression: Compression) -> None:
    """With its own CRC check on."""
    with Broker(encode_batch(SENT, compression=compression)) as broker:
        settings = {"check.crcs": True, "enable.auto.commit": False, "group.id": "g"}
        consumer = Consumer({"bootstrap.servers": broker.address, **settings})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        messages = consumer.consume(END, 30)
        consumer.close()
    assert [
        (m.offset(), m.timestamp()[1], m.key(), m.value(), m.headers() or []) for m in messages
    ] == [(r.offset, r.timestamp_ms, r.key, r.value, [*r.headers]) for r in SENT]
