"""Rows: a node is killed while it seals, and its hot files are damaged. SQL must return all rows.

Requests of all three signals go to a real node, which is killed with -9 while it reads, decodes,
seals and merges. Then files of the hot tier are flipped, cut or removed. `frazil.open` must return
every acknowledged row once, in log order, and no row that is not in the log.
"""

from __future__ import annotations

import http.client
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import frazil
from frazil.model import Rand, Signal, SystemClock
from tests.clients.node import Node, stored
from tests.conformance.cases import NOW_NS, log, logs, metric, metrics, span, spans
from tests.torture.checker import Verdict
from tests.torture.report import Report

SETTINGS = """
[hot]
seal_age_ms = 1
seal_bytes = 262144
memory_bytes_max = 1048576
refresh_ms = 1
[lake]
enabled = false
"""
"""Seal and merge files as often as the disk allows."""
SENDERS = 3
ROWS = 5
"""Rows per request."""
RUN_S_MAX = 0.8
CYCLES_PER_FOLDER = 8
TIMEOUT_S = 30
SURE_CYCLES = 20
"""From this many cycles on, every kind of damage and a half-written file must occur."""
DAMAGES = ("flip", "cut", "remove", "nothing")

TABLES = {
    Signal.LOGS: ("logs", "event_name"),
    Signal.TRACES: ("spans", "name"),
    Signal.METRICS: ("metrics", "metric_name"),
}
"""Signal -> (table, column with the record's name)."""


@dataclass(slots=True)
class Ledger:
    """Names of the records sent and acknowledged, by signal."""

    sent: dict[Signal, set[str]] = field(default_factory=lambda: {s: set() for s in Signal})
    acknowledged: dict[Signal, set[str]] = field(default_factory=lambda: {s: set() for s in Signal})


def run(cycles: int, seed: int) -> Report:
    must_fire: tuple[str, ...] = ("killed", "acknowledged", "sealed")
    if cycles >= SURE_CYCLES:
        must_fire += (*DAMAGES, "half_written")
    report = Report("rows", seed, must_fire=must_fire)
    rand = Rand(seed)
    with tempfile.TemporaryDirectory() as scratch:
        settings = Path(scratch) / "frazil.toml"
        settings.write_text(SETTINGS)
        for cycle in range(cycles):
            if cycle % CYCLES_PER_FOLDER == 0:
                folder, ledger = Path(scratch) / f"data-{cycle}", Ledger()
            report.take(*_cycle(folder, settings, ledger, cycle, rand), f"cycle {cycle}:")
    return report


def _cycle(
    folder: Path, settings: Path, ledger: Ledger, cycle: int, rand: Rand
) -> tuple[Verdict, Counter[str]]:
    fired = Counter[str](killed=1)
    before = _acknowledged(ledger)
    with Node(folder, "--config", str(settings)) as node:
        senders = [
            threading.Thread(target=_send_all, args=(node, ledger, signal, f"{cycle}-{number}"))
            for number in range(SENDERS)
            for signal in Signal
        ]
        for thread in senders:
            thread.start()
        SystemClock().sleep(rand.uniform(0.1, RUN_S_MAX))
        node.kill()
        for thread in senders:
            thread.join()
    fired["acknowledged"] = _acknowledged(ledger) - before
    fired["half_written"] = len(list(folder.glob("hot/**/*.tmp")))
    files = sorted(folder.glob("hot/**/*.arrow"))
    fired["sealed"] = len(files)
    damage = rand.choice(DAMAGES)
    if damage == "nothing" or files:
        fired[damage] += 1
        _damage(damage, rand.choice(files) if files else folder, rand)
    # Checking opens the folder. Skip it at times, so that the next node starts on the damage.
    return (_judge(folder, settings, ledger) if rand.random() < 0.7 else Verdict()), fired


def _acknowledged(ledger: Ledger) -> int:
    return sum(map(len, ledger.acknowledged.values()))


def _send_all(node: Node, ledger: Ledger, signal: Signal, sender: str) -> None:
    """Send requests until the node is down."""
    connection = http.client.HTTPConnection("127.0.0.1", node.http_port, timeout=TIMEOUT_S)
    headers = {"Content-Type": "application/x-protobuf"}
    for number in range(100_000):
        names = [f"{sender}-{number}-{row}" for row in range(ROWS)]
        ledger.sent[signal].update(names)
        try:
            connection.request("POST", signal.path, _body(signal, number, names), headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            break
        assert answer.status == 200
        ledger.acknowledged[signal].update(names)
    connection.close()


def _body(signal: Signal, number: int, names: list[str]) -> bytes:
    if signal is Signal.LOGS:
        return logs(*(log(number, event_name=name) for name in names))
    if signal is Signal.TRACES:
        return spans(*(span(number, name=name) for name in names))
    made = [metric(number) for _ in names]
    for each, name in zip(made, names, strict=True):
        each.name = name
        each.gauge.data_points.add(as_int=number, time_unix_nano=NOW_NS + number)
    return metrics(*made)


def _damage(damage: str, path: Path, rand: Rand) -> None:
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        with path.open("r+b") as file:
            file.truncate(rand.randrange(path.stat().st_size))
    elif damage == "flip":
        data = bytearray(path.read_bytes())
        data[rand.randrange(len(data))] ^= 1 << rand.randrange(8)
        path.write_bytes(data)


def _judge(folder: Path, settings: Path, ledger: Ledger) -> Verdict:
    """Compare the acknowledged records, the log and the SQL results."""
    verdict = Verdict()
    with frazil.open(folder, config=settings) as opened:
        returned = {
            signal: [row[0] for row in opened.sql(_query(*TABLES[signal])).fetchall()]
            for signal in Signal
        }
        dead = opened.sql("SELECT reason FROM dead_letters").fetchall()
    held = stored(folder)
    for signal in Signal:
        where, names = signal.name, returned[signal]
        for name in ledger.acknowledged[signal] - set(names):
            verdict.add("lost", f"{where} {name}")
        for name, count in Counter(names).items():
            if count > 1:
                verdict.add("duplicate", f"{where} {name}")
        for name in set(names) - ledger.sent[signal]:
            verdict.add("foreign", f"{where} {name}")
        if names != [name for request in held[signal] for name in _names(signal, request)]:
            verdict.add("order", f"{where}: SQL does not return the rows in log order")
    for (reason,) in dead:
        verdict.add("untrue", f"dead letter: {reason}")
    return verdict


def _query(table: str, column: str) -> str:
    return f"SELECT {column} FROM {table} ORDER BY _log_partition, _offset, _row"


def _names(signal: Signal, request: object) -> list[str]:
    """Return the names of a request's records, in order."""
    if signal is Signal.LOGS:
        scopes = request.resource_logs[0].scope_logs  # type: ignore[attr-defined]
        return [record.event_name for record in scopes[0].log_records]
    if signal is Signal.TRACES:
        scopes = request.resource_spans[0].scope_spans  # type: ignore[attr-defined]
        return [record.name for record in scopes[0].spans]
    scopes = request.resource_metrics[0].scope_metrics  # type: ignore[attr-defined]
    return [record.name for record in scopes[0].metrics]
