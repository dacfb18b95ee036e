"""The Kafka port beside Apache Kafka, with the same librdkafka client, acks=all.

The peer keeps the same promise with `flush.messages=1`: a batch is on the disk before it is
acknowledged. Its default, which syncs nothing, is measured as well and reported. All servers take
turns, and the first round is not counted: both sides are slower right after a start. Topics keep
little, so that no disk fills. Prints one JSON line last; exits 1 when a bar is missed.

    PYTHONPATH=. python bench/kafka.py [case ...]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from bench.ingest import measure as measure_otlp
from bench.log import scratch_folder
from bench.steady import processes_of, sample_of
from tests.clients.node import FREE_PORTS
from tests.live.kafka.broker import KafkaBroker

ROUNDS = 5
ROUND_S = 4.0
ANSWER_S_MAX = 60.0
SETTINGS = """
[log]
disk_bytes_max = 8589934592
[lake]
enabled = false
"""
JVM = ("-Xmx1g", "-Xms1g")
"""Of the peer: its own defaults otherwise."""
TOPIC_CONFIG = {"retention.bytes": str(1 << 30), "cleanup.policy": "delete"}
FLUSHED = {"flush.messages": "1"}
FETCHED_RECORDS = 500_000
OTLP_RATE, OTLP_RECORDS = 100.0, 100
OTLP_S = 10.0
KAFKA_RATE = 20_000.0
"""Records of 1 KB per second, beside which OTLP is measured."""
LATENESS_MAX = 1.2
PIPELINED = {
    "batch.size": 16 * 1024,
    "enable.idempotence": False,
    "queue.buffering.backpressure.threshold": 5,
}
"""With idempotence librdkafka sends a batch only when the one before it is answered. Others do not,
and five of them can share one sync."""

Case = dict[str, object]
Result = dict[str, float]


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and the topic in which it keeps the promise to be measured."""

    name: str
    address: str
    topic: str


# The clients: each run is a process of its own.


def producer(address: str, **settings: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "enable.idempotence": True,
            "queue.buffering.max.kbytes": 1 << 18,
            **settings,
        }
    )


def stream(
    address: str, topic: str, size: int, seconds: float, rate: float, **settings: object
) -> Result:
    """Produce as fast as the server takes it, or so many a second."""
    failed = []
    client = producer(address, **settings)
    value = bytes(range(256)) * (size // 256 + 1)
    value = value[:size]

    def note(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    begin = time.perf_counter()
    count = 0
    while (now := time.perf_counter()) < begin + seconds:
        if rate and count > (now - begin) * rate:
            client.poll(0.001)
            continue
        try:
            client.produce(topic, value, on_delivery=note)
            count += 1
        except BufferError:
            client.poll(0.01)
        if count % 1000 == 0:
            client.poll(0)
    client.flush(ANSWER_S_MAX)
    took = time.perf_counter() - begin
    assert not failed, failed[0]
    assert len(client) == 0
    return {"rate": count / took, "mb_per_s": count * size / took / 1e6}


def one_by_one(address: str, topic: str, seconds: float) -> Result:
    """Wait for each record before the next."""
    client = producer(address, **{"linger.ms": 0})
    latencies = []
    begin = time.perf_counter()
    while time.perf_counter() < begin + seconds:
        sent = time.perf_counter()
        client.produce(topic, bytes(1024))
        client.flush(ANSWER_S_MAX)
        latencies.append(time.perf_counter() - sent)
    latencies.sort()
    return {
        f"p{percent}_ms": 1000 * latencies[len(latencies) * percent // 100] for percent in (50, 99)
    }


def transact(address: str, topic: str, seconds: float) -> Result:
    """Commit transactions of ten records, one after the other."""
    client = producer(address, **{"transactional.id": f"bench-{time.time_ns()}", "linger.ms": 0})
    client.init_transactions(ANSWER_S_MAX)
    count = 0
    begin = time.perf_counter()
    while time.perf_counter() < begin + seconds:
        client.begin_transaction()
        for _ in range(10):
            client.produce(topic, bytes(1024))
        client.commit_transaction(ANSWER_S_MAX)
        count += 1
    return {"rate": count / (time.perf_counter() - begin)}


def consume(address: str, topic: str, count: int) -> Result:
    """Read so many records from the start."""
    client = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 1 << 18,
        }
    )
    low, high = client.get_watermark_offsets(TopicPartition(topic, 0), ANSWER_S_MAX)
    assert high - low >= count, f"{high - low} records in {topic}"
    client.assign([TopicPartition(topic, 0, low)])
    seen = 0
    begin = time.perf_counter()
    while seen < count:
        batch = client.consume(10_000, 1.0)
        assert time.perf_counter() < begin + ANSWER_S_MAX, f"{seen} of {count} records"
        assert not any(message.error() for message in batch)
        seen += len(batch)
    took = time.perf_counter() - begin
    client.close()
    return {"rate": seen / took}


def run_client(kind: str, server: Server, *words: object) -> Result:
    """Run a client in its own process."""
    command = [sys.executable, __file__, "client", kind, server.address, server.topic]
    done = subprocess.run([*command, *map(str, words)], check=True, capture_output=True, text=True)
    result: Result = json.loads(done.stdout)
    return result


# The servers.


@contextmanager
def our_node(folder: Path) -> Iterator[tuple[dict[str, int], float, int]]:
    """Our node: its ports, the seconds it took to start, and its process."""
    settings = folder / "frazil.toml"
    settings.write_text(SETTINGS)
    begin = time.perf_counter()
    options = ["--config", str(settings), "--data", str(folder / "data"), "--json"]
    command = [sys.executable, "-m", "frazil", "up", *options, *FREE_PORTS]
    node = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert node.stdout is not None
    try:
        found = json.loads(node.stdout.readline())
        AdminClient({"bootstrap.servers": f"127.0.0.1:{found['kafka_port']}"}).list_topics(
            timeout=ANSWER_S_MAX
        )
        yield found, time.perf_counter() - begin, node.pid
    finally:
        node.terminate()
        node.wait(ANSWER_S_MAX)


def create(address: str, topic: str, config: dict[str, str]) -> None:
    """Create a topic, and check that it is what we asked for."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(ANSWER_S_MAX)
    deadline = time.monotonic() + ANSWER_S_MAX
    while topic not in admin.list_topics(timeout=ANSWER_S_MAX).topics:  # Kafka tells it later
        assert time.monotonic() < deadline, f"{topic} was not created"
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (found,) = admin.describe_configs([resource]).values()
    values = {name: entry.value for name, entry in found.result(ANSWER_S_MAX).items()}
    assert all(values.get(name) == value for name, value in config.items()), values


def pss_mb(root: int) -> float:
    return sum(sample_of(pid).pss_mb for pid in processes_of(root))


# The cases.


@dataclass(frozen=True, slots=True)
class Servers:
    """Ours, the peer that syncs every batch, and the peer that syncs none."""

    ours: Server
    synced: Server
    unsynced: Server
    otlp_port: int


def in_turns(run: Callable[[Server], float], *servers: Server) -> list[list[float]]:
    """Let the servers take turns. The first round is not counted."""
    rounds = [[run(server) for server in servers] for _ in range(ROUNDS + 1)][1:]
    return [list(each) for each in zip(*rounds, strict=True)]


def compare(
    name: str,
    unit: str,
    bar: float,
    servers: Servers,
    run: Callable[[Server], float],
    *,
    is_lower_better: bool = False,
) -> Case:
    ours, synced, unsynced = in_turns(run, servers.ours, servers.synced, servers.unsynced)
    ratio = statistics.median(a / b for a, b in zip(ours, synced, strict=True))
    other = statistics.median(a / b for a, b in zip(ours, unsynced, strict=True))
    return {
        "case": name,
        "ours": round(statistics.median(ours), 2),
        "peer": round(statistics.median(synced), 2),
        "unit": unit,
        "ratio": round(ratio, 3),
        "bar": bar,
        "ok": ratio <= bar if is_lower_better else ratio >= bar,
        "unsynced_peer": round(statistics.median(unsynced), 2),
        "unsynced_ratio": round(other, 3),
    }


def stream_1kb(servers: Servers) -> Case:
    return compare(
        "stream of 1 KB records",
        "MB/s",
        1.0,
        servers,
        lambda server: run_client("stream", server, 1024, ROUND_S, 0)["mb_per_s"],
    )


def batches_16kb(servers: Servers) -> Case:
    return compare(
        "stream of 1 KB records in batches of 16 KB, five in flight",
        "MB/s",
        3.0,
        servers,
        lambda server: run_client("batches", server, 1024, ROUND_S)["mb_per_s"],
    )


def stream_100b(servers: Servers) -> Case:
    return compare(
        "stream of 100-byte records",
        "records/s",
        1.0,
        servers,
        lambda server: run_client("stream", server, 100, ROUND_S, 0)["rate"],
    )


def single(servers: Servers) -> Case:
    return compare(
        "one record at a time, p50",
        "ms",
        1.0,
        servers,
        lambda server: run_client("one_by_one", server, ROUND_S)["p50_ms"],
        is_lower_better=True,
    )


def transactions(servers: Servers) -> Case:
    return compare(
        "transactions of ten records",
        "transactions/s",
        1.0,
        servers,
        lambda server: run_client("transact", server, ROUND_S)["rate"],
    )


def consumed(servers: Servers) -> Case:
    """Beside Kafka's default: reading does not depend on how a topic was written."""
    for server in (servers.ours, servers.unsynced):
        for _ in range(3):
            run_client("stream", server, 1024, ROUND_S, 0)
    ours, theirs = in_turns(
        lambda server: run_client("consume", server, FETCHED_RECORDS)["rate"],
        servers.ours,
        servers.unsynced,
    )
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    return {
        "case": "consume records of 1 KB",
        "ours": round(statistics.median(ours)),
        "peer": round(statistics.median(theirs)),
        "unit": "records/s",
        "ratio": round(ratio, 3),
        "bar": 0.7,
        "ok": ratio >= 0.7,
    }


def otlp_beside_kafka(servers: Servers) -> Case:
    """Acknowledgements of OTLP with and without a steady load on the Kafka port."""
    alone, beside = [], []
    for _ in range(ROUNDS):
        alone.append(otlp_p99(servers))
        command = [sys.executable, __file__, "client", "stream", servers.ours.address]
        words = [servers.ours.topic, "1024", str(OTLP_S + 4), str(KAFKA_RATE)]
        load = subprocess.Popen([*command, *words], stdout=subprocess.DEVNULL)
        time.sleep(2)
        beside.append(otlp_p99(servers))
        assert load.wait(ANSWER_S_MAX) == 0
    ratio = statistics.median(beside) / statistics.median(alone)
    return {
        "case": f"OTLP ack p99 beside {KAFKA_RATE:.0f} records/s on the Kafka port",
        "ours": round(statistics.median(beside), 2),
        "peer": round(statistics.median(alone), 2),
        "unit": "ms; the peer is the same node without that load",
        "ratio": round(ratio, 3),
        "bar": LATENESS_MAX,
        "ok": ratio <= LATENESS_MAX,
    }


def otlp_p99(servers: Servers) -> float:
    found = measure_otlp("grpc", servers.otlp_port, OTLP_RECORDS, OTLP_RATE, OTLP_S)
    return found["p99_ms"]


CASES: dict[str, Callable[[Servers], Case]] = {
    "single": single,
    "batches": batches_16kb,
    "stream": stream_1kb,
    "small": stream_100b,
    "transactions": transactions,
    "consume": consumed,
    "otlp": otlp_beside_kafka,
}


def main(names: list[str]) -> int:
    cases: list[Case] = []
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder()).resolve()
        ports, ours_s, node = stack.enter_context(our_node(folder))
        begin = time.perf_counter()
        broker = stack.enter_context(KafkaBroker(folder / "kafka", jvm=JVM))
        theirs_s = time.perf_counter() - begin
        ours = Server("ours", f"127.0.0.1:{ports['kafka_port']}", "bench")
        servers = Servers(
            ours=ours,
            synced=Server("synced", broker.address, "synced"),
            unsynced=Server("unsynced", broker.address, "unsynced"),
            otlp_port=ports["otlp_grpc_port"],
        )
        create(ours.address, ours.topic, TOPIC_CONFIG)
        create(broker.address, "synced", {**TOPIC_CONFIG, **FLUSHED})
        create(broker.address, "unsynced", TOPIC_CONFIG)
        for name in names or CASES:
            cases.append(CASES[name](servers))
            print(json.dumps(cases[-1]), flush=True)
        cost = {
            "start_s": {"ours": round(ours_s, 2), "peer": round(theirs_s, 2)},
            "pss_mb": {"ours": round(pss_mb(node)), "peer": round(pss_mb(broker.process.pid))},
        }
    print(json.dumps({"bench": "kafka", "cases": cases, **cost}))
    return 0 if all(case["ok"] for case in cases) else 1


def run_as_client(kind: str, address: str, topic: str, *words: str) -> Result:
    numbers = [float(word) for word in words]
    match kind:
        case "stream":
            return stream(address, topic, int(numbers[0]), numbers[1], numbers[2])
        case "batches":
            return stream(address, topic, int(numbers[0]), numbers[1], 0, **PIPELINED)
        case "one_by_one":
            return one_by_one(address, topic, numbers[0])
        case "transact":
            return transact(address, topic, numbers[0])
        case "consume":
            return consume(address, topic, int(numbers[0]))
    raise SystemExit(f"unknown client {kind}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["client", kind, address, topic, *words]:
            print(json.dumps(run_as_client(kind, address, topic, *words)))
        case names:
            sys.exit(main(names))
