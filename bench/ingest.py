"""OTLP to a durable acknowledgement, beside a bare server that checks nothing.

The peer is a raw-bytes asyncio gRPC server that writes bodies to one file, syncs each group once,
and answers: no scan, digest, checksum or index. Both get the same load from another process, in
turns. Ours only receives, like the peer, in the first cases. In the last three it also makes rows,
on the same cores: bursts as fast as acknowledged, and how long until all of them are visible; a
steady load that rows must keep up with; half of that load. `rows` runs only these. Prints one JSON
line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

from bench.log import scratch_folder
from tests.clients.node import FREE_PORTS

METHOD = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
ROUNDS = 3
ROUNDS_BARRED = 9
"""Disk speed of a shared machine varies by a factor of two within seconds; cases with a bar take
the median of many rounds."""
ROUND_S = 3.0
SENDERS = 8
RECORDS = (10, 100, 1000)
BAR = 0.7
"""Relative to the bare server, with requests of 1,000 records: the cost of the promise."""
HALF = 0.5
BURST_S = 20.0
BURST_ROUNDS = 3
BURST_BAR = 0.8
"""Acknowledgements come before rows."""
VISIBLE_S_MAX = 10.0
"""From the end of the burst until every row of it is visible."""
STEADY_S = 60.0
STEADY_BAR = 0.6
"""Of the peer's rate, with rows as fast as requests."""
STEADY_LAG_S_MAX = 1.0
"""Requests that are not visible yet, in seconds of the load, at the end of a steady load. One that
rows cannot keep up with leaves tens of seconds."""
ON_TIME = 0.99
"""Share of a steady load that must have been sent in time."""
CALM_P99_MS_MAX = 10.0
SETTINGS = """
[log]
disk_bytes_max = 68719476736
[hot]
enabled = {has_rows}
disk_bytes_max = 34359738368
[lake]
enabled = false
"""
"""Without Spark, which would start during the run; the peer has no lake either."""
GRACE_S = 10.0

Case = dict[str, object]
Send = Callable[[bytes], None]


def request_of(records: int) -> bytes:
    """A request of log records of a web shop: 323 bytes and 7 attributes each."""
    chance = random.Random(records)
    request = ExportLogsServiceRequest()
    resource_logs = request.resource_logs.add()
    for key, text in (("service.name", "checkout"), ("host.name", "node-7"), ("stage", "prod")):
        resource_logs.resource.attributes.add(key=key).value.string_value = text
    scope_logs = resource_logs.scope_logs.add()
    scope_logs.scope.name = "shop.checkout"
    for number in range(records):
        record = scope_logs.log_records.add()
        record.time_unix_nano = 1_790_000_000_000_000_000 + number * 1000
        record.observed_time_unix_nano = record.time_unix_nano + 5
        record.severity_number = SeverityNumber.SEVERITY_NUMBER_INFO
        record.severity_text = "INFO"
        record.body.string_value = (
            f"GET /api/v1/products/{chance.randint(0, 99999)} HTTP/1.1 200 "
            f"{chance.randint(1, 900)}ms user={chance.randint(0, 1 << 30)}"
        )
        record.trace_id = chance.randbytes(16)
        record.span_id = chance.randbytes(8)
        for key, text in (
            ("http.method", "GET"),
            ("http.route", "/api/v1/products/:id"),
            ("net.peer.ip", f"10.0.{chance.randint(0, 255)}.{chance.randint(0, 255)}"),
            ("user.id", f"u{chance.randint(0, 1_000_000)}"),
            ("thread.name", f"worker-{chance.randint(0, 16)}"),
        ):
            record.attributes.add(key=key).value.string_value = text
        record.attributes.add(key="http.status_code").value.int_value = 200
        record.attributes.add(key="http.response.length").value.int_value = chance.randint(0, 99999)
    return request.SerializeToString()


class Bodies:
    """An endless supply of requests that differ in one trace id, so that none is a duplicate."""

    def __init__(self, records: int, sender: int) -> None:
        self._body = bytearray(request_of(records))
        trace_id = ExportLogsServiceRequest.FromString(bytes(self._body))
        first = trace_id.resource_logs[0].scope_logs[0].log_records[0].trace_id
        self._place = self._body.index(first)
        self._body[self._place : self._place + 8] = os.urandom(8)
        self._number = sender << 32

    def next(self) -> bytes:
        self._number += 1
        self._body[self._place + 8 : self._place + 16] = self._number.to_bytes(8, "big")
        return bytes(self._body)


# The load: one process, several senders, each waiting for its answer.


def grpc_sender(port: int) -> Send:
    channel = grpc.insecure_channel(
        f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)]
    )
    call = channel.unary_unary(METHOD)

    def send(body: bytes) -> None:
        call(body)

    return send


def http_sender(port: int) -> Send:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(body: bytes) -> None:
        head = (
            "POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 "), answer

    return send


SENDER = {"grpc": grpc_sender, "http": http_sender}


def load(transport: str, port: int, records: int, seconds: float, rate: float) -> None:
    """Send for some seconds, as fast as acknowledged or `rate` per second. Print the results."""
    latencies: list[float] = []
    begin = time.perf_counter() + 0.3
    interval = SENDERS / rate if rate else 0.0

    def run(sender: int) -> None:
        send, bodies = SENDER[transport](port), Bodies(records, sender)
        send(bodies.next())
        due = begin + interval * sender / SENDERS
        while (now := time.perf_counter()) < begin + seconds:
            if now < due:
                time.sleep(due - now)
                now = due
            send(bodies.next())
            latencies.append(time.perf_counter() - now)
            due += interval

    senders = [threading.Thread(target=run, args=(number,)) for number in range(SENDERS)]
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()
    took = time.perf_counter() - begin
    latencies.sort()
    spread = {
        f"p{percent}_ms": 1000 * latencies[int(len(latencies) * percent / 100)]
        for percent in (50, 99)
    }
    print(json.dumps({"rate": len(latencies) / took, **spread}))


def measure(
    transport: str, port: int, records: int, rate: float = 0.0, seconds: float = ROUND_S
) -> dict[str, float]:
    """One round of load from another process."""
    words = ["load", transport, port, records, seconds, rate]
    done = subprocess.run(
        [sys.executable, __file__, *map(str, words)], check=True, capture_output=True, text=True
    )
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


# The peer.


async def serve_bare(path: str) -> None:
    """Write every body to one file, sync each group, answer."""
    file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)
    loop, wake = asyncio.get_running_loop(), asyncio.Event()
    waiting: list[tuple[bytes, asyncio.Future[None]]] = []

    async def export(body: bytes, _: object) -> bytes:
        done: asyncio.Future[None] = loop.create_future()
        waiting.append((body, done))
        wake.set()
        await done
        return b""

    class AnyMethod(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, _: object) -> object:
            return grpc.unary_unary_rpc_method_handler(export)

    def write(batch: list[tuple[bytes, asyncio.Future[None]]]) -> None:
        os.writev(file, [body for body, _ in batch])
        os.fdatasync(file)

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
    server.add_generic_rpc_handlers((AnyMethod(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(json.dumps({"otlp_grpc_port": port}), flush=True)
    while True:
        await wake.wait()
        wake.clear()
        while waiting:
            batch = waiting[:1000]
            del waiting[:1000]
            await loop.run_in_executor(None, write, batch)
            for _, done in batch:
                if not done.done():
                    done.set_result(None)


@contextmanager
def running(*command: str) -> Iterator[dict[str, int]]:
    """A server in its own process; yields the ports it prints."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def both_servers(*, has_rows: bool) -> Iterator[tuple[dict[str, int], int]]:
    """Our node and the bare server, on fresh folders. Yields our ports and the peer's."""
    with scratch_folder() as folder:
        settings = folder / "frazil.toml"
        settings.write_text(SETTINGS.format(has_rows=str(has_rows).lower()))
        node = ("-m", "frazil", "up", "--config", str(settings), "--data", str(folder / "data"))
        with (
            running(*node, *FREE_PORTS, "--json") as ours,
            running(__file__, "bare", str(folder / "bare")) as bare,
        ):
            yield ours, bare["otlp_grpc_port"]


def measure_case(transport: str, records: int) -> Case:
    """Both servers in turns; then ours at half its load."""
    bar = BAR if (transport, records) == ("grpc", 1000) else None
    with both_servers(has_rows=False) as (ours, bare_port):
        port = ours[f"otlp_{transport}_port"]
        rates, peers, ratios = [], [], []
        for _ in range(ROUNDS if bar is None else ROUNDS_BARRED):
            rates.append(measure(transport, port, records)["rate"])
            peers.append(measure("grpc", bare_port, records)["rate"])
            ratios.append(rates[-1] / peers[-1])
        rate, peer = statistics.median(rates), statistics.median(peers)
        ratio = statistics.median(ratios)
        calm = measure(transport, port, records, rate * HALF)
    length = len(request_of(records))
    case: Case = {
        "case": f"{transport}, {records} records",
        "ours": round(rate * records),
        "peer": round(peer * records),
        "unit": "records/s",
        "ratio": round(ratio, 3),
        "ratios": [round(r, 2) for r in ratios],
        "bar": bar,
        "ok": bar is None or ratio >= bar,
        "requests_per_s": round(rate),
        "mb_per_s": round(rate * length / 1e6, 1),
        "half_load_p50_ms": round(calm["p50_ms"], 2),
        "half_load_p99_ms": round(calm["p99_ms"], 2),
    }
    print(json.dumps(case), flush=True)
    return case


# With rows.


def requests_behind(port: int) -> int:
    """Return the acknowledged requests whose rows are not visible."""
    url = f"http://127.0.0.1:{port}/api/v1/status"
    with urllib.request.urlopen(url, timeout=60) as response:
        lag: int = json.load(response)["hot"]["lag_offsets"]
        return lag


def seconds_until_visible(port: int) -> float:
    begin = time.monotonic()
    while requests_behind(port):
        time.sleep(0.05)
    return time.monotonic() - begin


def measure_with_rows() -> list[Case]:
    """Bursts, a steady load and half of it, of requests of 1,000 records."""
    records = max(RECORDS)
    peers, bursts, ratios, visible = [], [], [], []
    for _ in range(BURST_ROUNDS):
        with both_servers(has_rows=True) as (ours, bare_port):
            before = measure("grpc", bare_port, records, seconds=BURST_S)["rate"]
            burst = measure("grpc", ours["otlp_grpc_port"], records, seconds=BURST_S)["rate"]
            visible.append(seconds_until_visible(ours["http_port"]))
            after = measure("grpc", bare_port, records, seconds=BURST_S)["rate"]
        peers += [before, after]
        bursts.append(burst)
        ratios.append(2 * burst / (before + after))
    peer, ratio, visible_s = map(statistics.median, (peers, ratios, visible))
    offered = peer * STEADY_BAR
    with both_servers(has_rows=True) as (ours, _):
        steady = measure("grpc", ours["otlp_grpc_port"], records, offered, STEADY_S)["rate"]
        lag_s = requests_behind(ours["http_port"]) / steady
    with both_servers(has_rows=True) as (ours, _):
        calm = measure("grpc", ours["otlp_grpc_port"], records, offered * HALF, BURST_S)
    shared: Case = {"peer": round(peer * records), "unit": "records/s"}
    cases = [
        {
            "case": "burst with rows",
            "ours": round(statistics.median(bursts) * records),
            **shared,
            "ratio": round(ratio, 3),
            "ratios": [round(each, 2) for each in ratios],
            "bar": BURST_BAR,
            "visible_after_s": round(visible_s, 2),
            "visible_s_max": VISIBLE_S_MAX,
            "ok": ratio >= BURST_BAR and visible_s <= VISIBLE_S_MAX,
        },
        {
            "case": "steady load with rows",
            "ours": round(steady * records),
            **shared,
            "ratio": round(steady / peer, 3),
            "bar": STEADY_BAR,
            "lag_s": round(lag_s, 3),
            "lag_s_max": STEADY_LAG_S_MAX,
            "ok": steady >= offered * ON_TIME and lag_s <= STEADY_LAG_S_MAX,
        },
        {
            "case": "half of the steady load with rows, p99",
            "ours": round(calm["p99_ms"], 2),
            "unit": "ms",
            "ratio": None,
            "bar": CALM_P99_MS_MAX,
            "p50_ms": round(calm["p50_ms"], 2),
            "ok": calm["p99_ms"] <= CALM_P99_MS_MAX,
        },
    ]
    for case in cases:
        print(json.dumps(case), flush=True)
    return cases


def main(*, has_rows_only: bool) -> int:
    cases = []
    if not has_rows_only:
        cases += [measure_case(t, records) for t in ("grpc", "http") for records in RECORDS]
    cases += measure_with_rows()
    print(json.dumps({"bench": "ingest", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["load", transport, port, records, seconds, rate]:
            load(transport, int(port), int(records), float(seconds), float(rate))
        case ["bare", path]:
            asyncio.run(serve_bare(path))
        case ["rows"]:
            sys.exit(main(has_rows_only=True))
        case _:
            sys.exit(main(has_rows_only=False))
