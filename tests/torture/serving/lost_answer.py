"""Lost responses: the node stores a request, but the client never receives the response.

A proxy drops the response and the client sends the same bytes again, immediately or after the node
was killed and restarted. Each request must be in the log once. Some nodes are killed while requests
are in flight, so that their outcome is unknown.
"""

from __future__ import annotations

import http.client
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from frazil.model import Rand, Signal
from tests.clients.flaky import Fault, Flaky
from tests.clients.node import Node, stored
from tests.torture.checker import Verdict
from tests.torture.report import Report

GROUP = 25
"""Requests per round; a node is killed at most once per round."""
TRIES_MAX = 30
TIMEOUT_S = 30
WAYS = ("grpc", "http", "json")
MUST_FIRE = (*(f"lost_{way}" for way in WAYS), "again_at_once", "again_after_kill", "killed_amid")

JSON_TEXT = (
    '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"%s"},'
    '"timeUnixNano":"%d"}]}]}]}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """One request and its transport."""

    identity: str
    way: str
    body: bytes


def run(cycles: int, seed: int, *options: str) -> Report:
    """Lose at least `cycles` responses, in groups.

    A quarter of the groups is sent again after a kill; another quarter is in flight at the kill.
    """
    report = Report("lost_answer", seed, must_fire=MUST_FIRE)
    rand = Rand(seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "data"
        sent: list[Sending] = []
        with Node(folder, *options) as node:
            while _lost_count(report) < cycles:
                group = [_sending(rand, len(sent) + n) for n in range(GROUP)]
                sent += group
                kind = rand.choice((_again_at_once, _again_at_once, _again_after_kill, _kill_amid))
                report.take(*kind(node, group, rand), f"requests up to {len(sent)}:")
            assert node.stop() == 0
        report.verdict.merge(_judge(folder, sent), "")
    report.cycles = _lost_count(report)
    return report


def _lost_count(report: Report) -> int:
    return sum(report.faults[f"lost_{way}"] for way in WAYS)


def _sending(rand: Rand, number: int) -> Sending:
    identity, way = f"{number}-{rand.getrandbits(64):x}", rand.choice(WAYS)
    if way == "json":
        return Sending(identity=identity, way=way, body=(JSON_TEXT % (identity, number)).encode())
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.body.string_value = identity
    record.attributes.add(key="padding").value.bytes_value = rand.randbytes(rand.randint(0, 5000))
    return Sending(identity=identity, way=way, body=request.SerializeToString())


def _again_at_once(node: Node, group: list[Sending], _: Rand) -> tuple[Verdict, Counter[str]]:
    """Lose each response and send the request again to the same process."""
    verdict, fired = Verdict(), Counter[str]()
    for sending in group:
        _lose(node, sending, verdict, fired)
        _send_until_answered(node, sending, verdict)
        fired["again_at_once"] += 1
    return verdict, fired


def _again_after_kill(node: Node, group: list[Sending], _: Rand) -> tuple[Verdict, Counter[str]]:
    """Lose all responses, kill the node, and send all requests again to the next process."""
    verdict, fired = Verdict(), Counter[str]()
    for sending in group:
        _lose(node, sending, verdict, fired)
    node.kill()
    node.start()
    for sending in group:
        _send_until_answered(node, sending, verdict)
        fired["again_after_kill"] += 1
    return verdict, fired


def _kill_amid(node: Node, group: list[Sending], rand: Rand) -> tuple[Verdict, Counter[str]]:
    """Kill the node while all requests are in flight, ignore its responses, and send again."""
    verdict = Verdict()
    threads = [threading.Thread(target=_try, args=(node, sending)) for sending in group]
    for thread in threads:
        thread.start()
    threads[rand.randrange(len(threads))].join(rand.uniform(0, 0.03))
    node.kill()
    for thread in threads:
        thread.join()
    node.start()
    for sending in group:
        _send_until_answered(node, sending, verdict)
    return verdict, Counter(killed_amid=len(group))


def _lose(node: Node, sending: Sending, verdict: Verdict, fired: Counter[str]) -> None:
    """Send through a proxy that drops the response."""
    protocol: Literal["grpc", "http"] = "grpc" if sending.way == "grpc" else "http"
    faults = [Fault.LOSE, *[Fault.REFUSE] * TRIES_MAX]
    flaky = Flaky(_port(node, sending), protocol, faults)
    try:
        heard = SEND[sending.way](sending.body, flaky.port)
    finally:
        flaky.server_close()
    if heard or flaky.done[Fault.LOSE] != 1:
        verdict.add("untrue", f"{sending.identity}: no response was lost")
    fired[f"lost_{sending.way}"] += 1


def _send_until_answered(node: Node, sending: Sending, verdict: Verdict) -> None:
    if not any(_try(node, sending) for _ in range(TRIES_MAX)):
        verdict.add("untrue", f"{sending.identity}: no response in {TRIES_MAX} attempts")


def _try(node: Node, sending: Sending) -> bool:
    """Send once. Return True when the node acknowledged the request."""
    return SEND[sending.way](sending.body, _port(node, sending))


def _port(node: Node, sending: Sending) -> int:
    return node.grpc_port if sending.way == "grpc" else node.http_port


def _send_grpc(body: bytes, port: int) -> bool:
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_retries", 0),
    ]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        try:
            channel.unary_unary(Signal.LOGS.method)(body, timeout=TIMEOUT_S)
        except grpc.RpcError:
            return False
    return True


def _post(body: bytes, port: int, content_type: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", Signal.LOGS.path, body, {"Content-Type": content_type})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


SEND: dict[str, Callable[[bytes, int], bool]] = {
    "grpc": _send_grpc,
    "http": lambda body, port: _post(body, port, "application/x-protobuf"),
    "json": lambda body, port: _post(body, port, "application/json"),
}


def _judge(folder: Path, sent: list[Sending]) -> Verdict:
    """Check that the log holds every request once, and nothing else."""
    verdict = Verdict()
    found = Counter(
        record.body.string_value
        for request in stored(folder)[Signal.LOGS]
        for resource_logs in request.resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records
    )
    for sending in sent:
        count = found.pop(sending.identity, 0)
        if count != 1:
            verdict.add("duplicate" if count else "lost", f"{sending.identity} {count} times")
    for identity in found:
        verdict.add("foreign", identity)
    return verdict
