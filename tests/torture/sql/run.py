"""One node, attackers with hostile SQL, and a prober whose every request must be acknowledged."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.clients.node import Node
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF
from tests.torture.report import Report
from tests.torture.sql.texts import FAMILIES, texts

ATTACKERS = 6
ROWS = 3000
TIMEOUT_MS = 2000
QUEUE_S = 5.0
LATE_S = 1.5
"""An answer may come this much later than timeout and queue: other attackers use both cores."""
PROBE_INTERVAL_S = 0.02
ACK_S_MAX = 1.0
LEAVING = 0.15
"""Share of attackers that close their connection early."""
MEMORY_MB_MAX = 5000
"""Of all processes: query.workers_memory_bytes_max twice, for what grows between two looks, and the
node."""
STATUSES = frozenset({200, 400, 404, 413, 429, 503})
SETTINGS = ("--set", "lake.enabled=false", "--set", f"query.timeout_ms={TIMEOUT_MS}")


class Prober:
    """Sends a log every 20 ms, and notes how long each acknowledgement takes."""

    def __init__(self, port: int) -> None:
        self.took_s: list[float] = []
        self.failed: list[str] = []
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        number = 0
        while not self._stop.wait(PROBE_INTERVAL_S):
            number += 1
            body = logs(log(number, event_name=f"probe {number}"))
            begin = time.monotonic()
            try:
                connection.request("POST", "/v1/logs", body, {"Content-Type": PROTOBUF})
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    self.failed.append(f"probe {number}: {response.status}")
            except OSError as error:
                self.failed.append(f"probe {number}: {error}")
                connection.close()
            self.took_s.append(time.monotonic() - begin)
        connection.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


class Scale:
    """Weighs all processes of a node: proportional memory, in MB."""

    def __init__(self, pid: int) -> None:
        self.most_mb = 0.0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            self.most_mb = max(self.most_mb, sum(map(pss_mb, below(self._pid))))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def below(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def pss_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def ask(node: Node, text: str, timeout_s: float) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=timeout_s)
    try:
        body = json.dumps({"sql": text})
        connection.request("POST", "/api/v1/sql", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class Attack:
    """Attackers that take texts in turns."""

    def __init__(
        self, node: Node, report: Report, found: Iterator[tuple[str, str]], *, is_timed: bool
    ) -> None:
        self._limit_s = TIMEOUT_MS / 1000 + QUEUE_S + LATE_S if is_timed else float("inf")
        self._node = node
        self._report = report
        self._texts = found
        self._lock = threading.Lock()
        self.slowest_s = 0.0
        threads = [threading.Thread(target=self._run, args=(n,)) for n in range(ATTACKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run(self, number: int) -> None:
        chance = Random(f"{self._report.seed} {number}")
        while True:
            with self._lock:
                family, text = next(self._texts, ("", ""))
            if not family:
                return
            self._attack(family, text, is_leaving=chance.random() < LEAVING)

    def _attack(self, family: str, text: str, *, is_leaving: bool) -> None:
        begin = time.monotonic()
        what = f"{family} {text[:120]!r}"
        try:
            status, _ = ask(self._node, text, 0.3 if is_leaving else 60)
        except TimeoutError:
            outcome = "left" if is_leaving else "hung"
        except OSError as error:
            outcome = f"broken: {error}"
        else:
            outcome = str(status) if status in STATUSES else f"status {status}"
        took_s = time.monotonic() - begin
        with self._lock:
            self._report.cycles += 1
            self._report.faults.update({family: 1, outcome: 1})
            self.slowest_s = max(self.slowest_s, took_s)
            if outcome not in {*map(str, STATUSES), "left"}:
                self._report.verdict.add("untrue", f"{outcome}: {what}")
            if took_s > self._limit_s:
                self._report.verdict.add("untrue", f"answered after {took_s:.1f} s: {what}")


def processes(node: Node) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=60)
    try:
        connection.request("GET", "/api/v1/status")
        status = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return {each["process"]: each["pid"] for each in status["processes"]}


def count_rows(node: Node, expected: int) -> int:
    """Wait some seconds until all acknowledged rows are visible."""
    found = -1
    for _ in range(200):
        status, body = ask(node, "SELECT count(*) FROM logs", 60)
        found = json.loads(body)["rows"][0][0] if status == 200 else -1
        if found == expected:
            break
        time.sleep(0.05)
    return found


def run(cycles: int, seed: int, *, is_timed: bool = True) -> Report:
    """Send `cycles` hostile texts. `is_timed`: late answers and acknowledgements are anomalies;
    they say nothing on a machine that is busy with other work."""
    must_fire = (*FAMILIES, "200", "400", "413", "left") if cycles >= 100 else ("200", "400")
    report = Report("sql", seed, must_fire=must_fire)
    with (
        tempfile.TemporaryDirectory() as scratch,
        Node(Path(scratch) / "data", *SETTINGS) as node,
    ):
        connection = http.client.HTTPConnection("127.0.0.1", node.http_port, timeout=60)
        for begin in range(0, ROWS, 1000):
            records = (log(n, event_name=f"line {n}") for n in range(begin, begin + 1000))
            connection.request("POST", "/v1/logs", logs(*records), {"Content-Type": PROTOBUF})
            connection.getresponse().read()
        connection.close()
        count_rows(node, ROWS)
        before = processes(node)
        prober, scale = Prober(node.http_port), Scale(node.process.pid)
        attack = Attack(node, report, texts(seed, cycles), is_timed=is_timed)
        prober.stop()
        scale.stop()
        acknowledged = ROWS + len(prober.took_s) - len(prober.failed)
        found = count_rows(node, acknowledged)
        if found != acknowledged:
            report.verdict.add("lost", f"{acknowledged} acknowledged, {found} found")
        if processes(node) != before:
            report.verdict.add("untrue", f"{before} became {processes(node)}")
        for failure in prober.failed:
            report.verdict.add("untrue", failure)
        slowest_ack_s = max(prober.took_s)
        if is_timed and slowest_ack_s > ACK_S_MAX:
            report.verdict.add("untrue", f"an acknowledgement took {slowest_ack_s:.2f} s")
        if scale.most_mb > MEMORY_MB_MAX:
            report.verdict.add("untrue", f"all processes together took {scale.most_mb:.0f} MB")
        print(
            f"{len(prober.took_s)} probes, the slowest {slowest_ack_s * 1000:.0f} ms; slowest "
            f"answer {attack.slowest_s:.1f} s; {scale.most_mb:.0f} MB at most",
            file=sys.stderr,
        )
        if node.stop() != 0:
            report.verdict.add("untrue", "the node did not stop cleanly")
    return report
