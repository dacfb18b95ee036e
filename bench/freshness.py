"""Time from acknowledgement to visibility in SQL, while queries run.

A node as `frazil up` runs it. A process asks it over HTTP: one thread polls for new records, one
runs dashboard queries over everything. Another process sends at a steady rate and notes when each
request was acknowledged. A request is visible when a query that found it has returned, so query
time counts. Prints one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import numpy as np
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

import frazil
from bench.ingest import grpc_sender, request_of
from bench.log import scratch_folder
from tests.clients.node import FREE_PORTS

RATES = {10_000: 100, 100_000: 1_000}
"""Records per second -> records per request."""
WARM_S = 5.0
RUN_S = 20.0
SENDERS = 4
BAR_MS = 250.0
POLL_S = 0.025
"""Pause between two polls."""
DASHBOARD_S = 0.25
"""Pause between two dashboard queries."""
MARK = "mark"
"""Event name of the record that carries its request number."""
LINGER_S = 2.0
GRACE_S = 30.0

NEW = f"SELECT body FROM logs WHERE event_name = '{MARK}' AND time > now() - INTERVAL '3 seconds'"
DASHBOARD = (
    "SELECT service_name, count(*) AS n FROM logs GROUP BY service_name",
    "SELECT time_bucket('1 second', time) AS at, severity_number, count(*) AS n FROM logs "
    "WHERE time > now() - INTERVAL '15 minutes' GROUP BY at, severity_number ORDER BY at",
    "SELECT time, body FROM logs WHERE service_name = 'checkout' ORDER BY time DESC LIMIT 100",
    "SELECT count(*) AS n FROM logs WHERE matches(body, 'products AND 200') "
    "AND time > now() - INTERVAL '2 seconds'",
)

Case = dict[str, object]


# The load, in a process of its own.


class Marked:
    """Requests whose first record carries their number, with current timestamps."""

    def __init__(self, records: int) -> None:
        request = ExportLogsServiceRequest.FromString(request_of(records))
        made = request.resource_logs[0].scope_logs[0].log_records
        places = [record.time_unix_nano for record in made]
        made[0].event_name = MARK
        made[0].body.string_value = "0" * 12
        body = request.SerializeToString()
        self._body = np.frombuffer(bytearray(body), np.uint8)
        self._times = np.array([body.index(at.to_bytes(8, "little")) for at in places])
        self._number = body.index(b"0" * 12)

    def body(self, number: int) -> bytes:
        now = np.frombuffer(time.time_ns().to_bytes(8, "little"), np.uint8)
        self._body[self._times[:, None] + np.arange(8)] = now
        at = self._number
        self._body[at : at + 12] = np.frombuffer(f"{number:012}".encode(), np.uint8)
        return self._body.tobytes()


def load_up(port: int, rate: int, seconds: float) -> None:
    """Send `rate` records per second; print the acknowledgement time of each request."""
    records = RATES[rate]
    interval = records / rate
    begin = time.monotonic() + 0.5
    answered: dict[int, int] = {}

    def send_all(sender: int) -> None:
        send, requests = grpc_sender(port), Marked(records)
        number = sender
        while (due := begin + number * interval) < begin + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            send(requests.body(number))
            answered[number] = time.monotonic_ns()
            number += SENDERS

    senders = [threading.Thread(target=send_all, args=(number,)) for number in range(SENDERS)]
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()
    took = time.monotonic() - begin
    print(json.dumps({"answered": answered, "records_per_s": records * len(answered) / took}))


# Those who ask the node, in another.


@dataclass(slots=True)
class Seen:
    """What the pollers have seen, by request number."""

    began_ns: dict[int, int]
    """Start of the first query that found it."""
    ended_ns: dict[int, int]
    """End of that query."""
    poll_ms: list[float]
    dashboard_ms: list[float]


def look(url: str, seen: Seen, stop: threading.Event) -> None:
    with frazil.connect(url) as node:
        while not stop.wait(POLL_S):
            began = time.monotonic_ns()
            found = node.sql(NEW).arrow()["body"].to_pylist()
            ended = time.monotonic_ns()
            seen.poll_ms.append((ended - began) / 1e6)
            for number in map(int, found):
                if number not in seen.ended_ns:
                    seen.began_ns[number], seen.ended_ns[number] = began, ended


def watch_dashboard(url: str, seen: Seen, stop: threading.Event) -> None:
    turn = 0
    with frazil.connect(url) as node:
        while not stop.wait(DASHBOARD_S):
            began = time.monotonic_ns()
            node.sql(DASHBOARD[turn % len(DASHBOARD)]).arrow()
            seen.dashboard_ms.append((time.monotonic_ns() - began) / 1e6)
            turn += 1


def ask(url: str) -> None:
    """Ask a node until told to stop; then print what was seen."""
    seen = Seen({}, {}, [], [])
    stop = threading.Event()
    askers = [
        threading.Thread(target=work, args=(url, seen, stop)) for work in (look, watch_dashboard)
    ]
    for thread in askers:
        thread.start()
    print("asking", flush=True)
    sys.stdin.readline()
    stop.set()
    for thread in askers:
        thread.join()
    print(
        json.dumps(
            {
                "began": seen.began_ns,
                "ended": seen.ended_ns,
                "poll_ms": seen.poll_ms,
                "dashboard_ms": seen.dashboard_ms,
            }
        ),
        flush=True,
    )


def peak_mb(pids: list[int]) -> float:
    """The peak resident memory of these processes, added up."""
    total = 0.0
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
        total += int(line.split()[1]) / 1024
    return total


@contextmanager
def talking(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is written to and read from, and ended."""
    process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(GRACE_S)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def measure(rate: int) -> Case:
    up = [sys.executable, "-m", "frazil", "up", "--json", *FREE_PORTS]
    up += ["--set", "lake.enabled=false"]
    with scratch_folder() as folder, talking(*up, "--data", str(folder / "data")) as node:
        at = json.loads(line_of(node))
        url = f"http://127.0.0.1:{at['http_port']}"
        with talking(sys.executable, __file__, "ask", url) as asker:
            line_of(asker)
            words = ["load", at["otlp_grpc_port"], rate, WARM_S + RUN_S]
            sent = subprocess.run(
                [sys.executable, __file__, *map(str, words)],
                check=True,
                capture_output=True,
                text=True,
            )
            time.sleep(LINGER_S)
            assert asker.stdin is not None
            asker.stdin.write("\n")
            asker.stdin.flush()
            seen = json.loads(line_of(asker))
        with frazil.connect(url) as client:
            processes = client.get("/api/v1/status")["processes"]
        seen["rss_mb"] = peak_mb([process["pid"] for process in processes])
    return case_of(rate, json.loads(sent.stdout), seen)


def case_of(rate: int, sent: dict[str, object], seen: dict[str, object]) -> Case:
    answered, began, ended = sent["answered"], seen["began"], seen["ended"]
    assert isinstance(answered, dict)
    assert isinstance(began, dict)
    assert isinstance(ended, dict)
    first = int(WARM_S * rate / RATES[rate])
    counted = [number for number in answered if int(number) >= first]
    missing = [number for number in counted if number not in ended]
    waits = sorted(max(0, ended[n] - answered[n]) / 1e6 for n in counted if n in ended)
    there = sorted(max(0, began[n] - answered[n]) / 1e6 for n in counted if n in ended)
    p99 = at(waits, 99)
    case: Case = {
        "case": f"{rate} records/s",
        "ours": round(p99, 1),
        "peer": None,
        "unit": "ms from the answer to the query's answer, p99",
        "ratio": round(p99 / BAR_MS, 3),
        "bar": BAR_MS,
        "ok": p99 <= BAR_MS and not missing,
        "p50_ms": round(at(waits, 50), 1),
        "begun_p50_ms": round(at(there, 50), 1),
        "begun_p99_ms": round(at(there, 99), 1),
        "requests": len(counted),
        "never_seen": len(missing),
        "records_per_s": round(float(str(sent["records_per_s"]))),
        "polls": spread(seen["poll_ms"]),
        "dashboard": spread(seen["dashboard_ms"]),
        "node_rss_mb": round(float(str(seen["rss_mb"]))),
    }
    print(json.dumps(case), flush=True)
    return case


def at(numbers: list[float], percent: int) -> float:
    return numbers[min(len(numbers) - 1, len(numbers) * percent // 100)]


def spread(found: object) -> dict[str, float]:
    assert isinstance(found, list)
    numbers = sorted(found)
    return {
        "count": len(numbers),
        "p50_ms": round(at(numbers, 50), 1),
        "p99_ms": round(at(numbers, 99), 1),
    }


def main() -> int:
    cases = [measure(rate) for rate in RATES]
    print(json.dumps({"bench": "freshness", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["load", port, rate, seconds]:
            load_up(int(port), int(rate), float(seconds))
        case ["ask", url]:
            ask(url)
        case _:
            sys.exit(main())
