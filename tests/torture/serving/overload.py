"""Overload: ten times the sustainable rate, over both transports.

The disk is slowed down, so that a client on the same machine can offer ten times the sustainable
rate. Requests arrive at a fixed rate, whatever the responses. Every refusal must be retryable and
carry a retry hint; accepted requests are in the log once; refused ones are not; memory stays
bounded; and normal service is back soon after.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from frazil.model import MiB, Signal
from tests.clients.node import Node, stored
from tests.torture.checker import Verdict
from tests.torture.report import Report

SYNC_MS = 100
GROUP_BYTES = 1 * MiB
IN_FLIGHT_BYTES = 40 * MiB
BODY_BYTES = 320_000
FACTOR = 10
CALIBRATION_S = 4.0
SENDERS = 8
"""Concurrent clients while the sustainable rate is measured; each waits for its response."""
OUTSTANDING_MAX = 4000
TIMEOUT_S = 60.0
NORMAL_S_MAX = 10.0
"""Normal service must be back within this time after the overload."""
NORMAL_COUNT = 20
HOT_BYTES = 64 * MiB
MEMORY_BYTES_MAX = 2 * IN_FLIGHT_BYTES + HOT_BYTES + 128 * MiB
"""Memory the node may use above its memory at rest: bodies in flight, their copies in the event
loop and the transports, fragments of both, and unsealed rows."""

SETTINGS = f"""
[log]
group_bytes_max = {GROUP_BYTES}
[ingest]
in_flight_bytes_max = {IN_FLIGHT_BYTES}
[hot]
memory_bytes_max = {HOT_BYTES}
[lake]
enabled = false
"""
RETRYABLE_HTTP = (429, 503)


@dataclass(slots=True)
class Load:
    """Sends uniquely named requests and keeps their outcomes."""

    node: Node
    outcomes: dict[str, str] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    channel: grpc.aio.Channel | None = None

    async def send(self) -> str:
        """Send one request over one of the transports and return its outcome."""
        number = next(self.numbers)
        name = f"{number:08}"
        body = _body(name)
        sending = self._send_grpc(body) if number % 2 else self._send_http(body)
        try:
            outcome = await asyncio.wait_for(sending, TIMEOUT_S)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            outcome = f"broken: {type(error).__name__}: {error}"
        except TimeoutError:
            outcome = "no response"
        self.outcomes[name] = outcome
        return outcome

    async def _send_grpc(self, body: bytes) -> str:
        if self.channel is None:
            self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{self.node.grpc_port}")
        try:
            await self.channel.unary_unary(Signal.LOGS.method)(body)
        except grpc.aio.AioRpcError as error:
            details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
            hints = Status.FromString(details).details
            has_hint = any(hint.Is(RetryInfo.DESCRIPTOR) for hint in hints)
            is_retryable = error.code() is grpc.StatusCode.UNAVAILABLE and has_hint
            return "refused" if is_retryable else f"impolite: {error.code()} {error.details()}"
        return "accepted"

    async def _send_http(self, body: bytes) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.node.http_port)
        try:
            head = (
                f"POST {Signal.LOGS.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                f"Content-Type: application/x-protobuf\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        finally:
            writer.close()
        status = int(answer.split(" ", 2)[1])
        if status == 200:
            return "accepted"
        is_retryable = status in RETRYABLE_HTTP and "\r\nretry-after: " in answer
        return "refused" if is_retryable else f"impolite: {answer!r}"

    async def close(self) -> None:
        if self.channel is not None:
            await self.channel.close()


def _body(name: str) -> bytes:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.event_name = name
    record.body.bytes_value = name.encode() * (BODY_BYTES // len(name))
    return request.SerializeToString()


def run(cycles: int, seed: int) -> Report:
    """Overload a node for `cycles` seconds."""
    report = Report("overload", seed, must_fire=("accepted", "refused"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "data"
        settings = Path(scratch) / "frazil.toml"
        settings.write_text(SETTINGS)
        command = [sys.executable, "-m", "tests.clients.slow_disk", str(SYNC_MS)]
        with Node(folder, "--config", str(settings), command=command) as node:
            at_rest = _memory(node, "VmRSS")
            load = Load(node)
            facts = asyncio.run(_overload(load, cycles, report.verdict))
            facts["memory_mb_at_rest"] = at_rest / MiB
            facts["memory_mb_max"] = _memory(node, "VmHWM") / MiB
            if _memory(node, "VmHWM") > at_rest + MEMORY_BYTES_MAX:
                report.verdict.add("untrue", f"memory grew without bound: {facts}")
            if node.stop() != 0:
                report.verdict.add("untrue", f"the node did not stop cleanly: {node.errors()}")
        print(json.dumps({k: round(v, 1) for k, v in facts.items()}), file=sys.stderr)
        report.verdict.merge(_judge(folder, load.outcomes), "")
    report.cycles = cycles
    report.faults += Counter(o.partition(":")[0] for o in load.outcomes.values())
    return report


async def _overload(load: Load, seconds: int, verdict: Verdict) -> dict[str, float]:
    sustainable = await _sustainable(load)
    offered, end_s = await _offer(load, sustainable * FACTOR, seconds)
    normal_s = await _until_normal(load, end_s)
    if normal_s > NORMAL_S_MAX:
        verdict.add("untrue", f"normal service was back only after {normal_s:.1f} s")
    await load.close()
    return {"sustainable_per_s": sustainable, "offered_per_s": offered, "normal_after_s": normal_s}


async def _sustainable(load: Load) -> float:
    """Return the accepted requests per second when clients wait for their responses."""
    end = time.monotonic() + CALIBRATION_S
    accepted = 0

    async def run() -> None:
        nonlocal accepted
        while time.monotonic() < end:
            outcome = await load.send()
            accepted += outcome == "accepted"

    await asyncio.gather(*(run() for _ in range(SENDERS)))
    return accepted / CALIBRATION_S


async def _offer(load: Load, rate: float, seconds: int) -> tuple[float, float]:
    """Send at a fixed rate, whatever the responses.

    Return the rate that was reached, and the time of the last request.
    """
    begin, sent = time.monotonic(), 0
    outstanding: set[asyncio.Task[str]] = set()
    while (now := time.monotonic()) < begin + seconds:
        while sent < (now - begin) * rate and len(outstanding) < OUTSTANDING_MAX:
            task = asyncio.create_task(load.send())
            outstanding.add(task)
            task.add_done_callback(outstanding.discard)
            sent += 1
        await asyncio.sleep(0.005)
    end = time.monotonic()
    if outstanding:
        await asyncio.wait(outstanding)
    return sent / (end - begin), end


async def _until_normal(load: Load, begin: float) -> float:
    """Return the seconds from `begin` until NORMAL_COUNT successive requests were accepted."""
    first, accepted = begin, 0
    while accepted < NORMAL_COUNT and time.monotonic() < begin + 3 * NORMAL_S_MAX:
        if accepted == 0:
            first = time.monotonic()
        accepted = accepted + 1 if await load.send() == "accepted" else 0
        if accepted == 0:
            await asyncio.sleep(0.2)
    return first - begin if accepted == NORMAL_COUNT else float("inf")


def _memory(node: Node, name: str) -> int:
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def _judge(folder: Path, outcomes: dict[str, str]) -> Verdict:
    """Check that accepted requests are stored once, refused ones are not, and no other outcomes."""
    verdict = Verdict()
    found = Counter(
        request.resource_logs[0].scope_logs[0].log_records[0].event_name
        for request in stored(folder)[Signal.LOGS]
    )
    for name, outcome in outcomes.items():
        count = found.pop(name, 0)
        if count > 1:
            verdict.add("duplicate", name)
        if outcome == "accepted" and not count:
            verdict.add("lost", name)
        if outcome == "refused" and count:
            verdict.add("refused", name)
        if outcome not in ("accepted", "refused"):
            verdict.add("untrue", f"{name}: {outcome}")
    for name in found:
        verdict.add("foreign", name)
    return verdict
