"""The run: transactions go on while connector, node and Postgres are killed, at random.

At the end each topic, folded, is its table; the events after the first copy of a table are the
last entries of its audit, key by key and in order; and there is none twice.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

from frazil.log import Log
from tests.connectors.postgres.harness import events_of, last_records, open_log, opened_again
from tests.connectors.postgres.server import PostgresServer, postgres_server, unavailable
from tests.torture.checker import Verdict
from tests.torture.postgres.child import OPTIONS, next_epoch
from tests.torture.postgres.workload import Workload
from tests.torture.report import Report

ALIVE_S = 1.5
"""A kill comes within this time."""
UNAVAILABLE = "__debezium_unavailable_value"
KILLS = ("node", "node", "connector", "connector", "postgres")
Event = dict[str, Any]


class PostgresTorture:
    """A server, a log, and what happens to them."""

    def __init__(self, server: PostgresServer, folder: Path, seed: int) -> None:
        self.events: Counter[str] = Counter()
        self._rand = Random(seed)
        self._server = server
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None
        self.workload = Workload(server, seed)

    def _start_child(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.torture.postgres.child", str(self._folder)]
        with (self._folder / "output").open("ab") as output:
            child = subprocess.Popen(
                [*command, str(self._server.port)], stdout=subprocess.PIPE, stderr=output
            )
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        return child

    def run(self, cycles: int) -> None:
        self.workload.prepare()
        self.workload.start()
        try:
            for _ in range(cycles):
                self._cycle()
        finally:
            self.workload.stop()
            if self._child is not None:
                self._child.kill()
                self._child.communicate()

    def _cycle(self) -> None:
        if self._child is None:
            self._child = self._start_child()
        time.sleep(self._rand.uniform(0.1, ALIVE_S))
        assert self._child.poll() is None, (self._folder / "output").read_text()
        kind = self._rand.choice(KILLS)
        self.events[f"killed_{kind}"] += 1
        if kind == "node":
            self._child.kill()
            self._child.communicate()
            self._child = None
        elif kind == "connector":
            self._child.send_signal(signal.SIGUSR1)
        else:
            self._server.kill()
            self._server.start()

    def judge(self, verdict: Verdict) -> None:
        """Let the source come to the end, then compare."""
        with self._server.connect() as connection:
            connection.execute("INSERT INTO plain (id, ver) VALUES (-2, 0)")
        log = open_log(self._folder / "data")
        run = opened_again(log, self._server.connection, OPTIONS, next_epoch(self._folder))
        names = self.workload.tables()

        def is_done() -> bool:
            return all(log.has_topic(f"public.{name}") for name in names) and any(
                record.key == b'{"id":-2}' for record in last_records(log, "public.plain")
            )

        run.run_until(is_done)
        run.close()
        with self._server.connect() as connection:
            for name in names:
                rows = [r[0] for r in connection.execute(f"SELECT to_jsonb(t) FROM {name} t")]
                audit = connection.execute(
                    "SELECT op, old, new FROM hidden.audit WHERE tab = %s ORDER BY id", (name,)
                ).fetchall()
                self._judge_table(verdict, log, name, rows, audit)
        log.close()

    def _judge_table(
        self, verdict: Verdict, log: Log, name: str, rows: list[Event], audit: list[Any]
    ) -> None:
        events = events_of(log, f"public.{name}")
        self.events["events"] += len(events)
        self.events.update(f"op_{event['op']}" for event in events)
        self.events["unchanged"] += sum("unchanged" in event for event in events)
        key_names = ("id", "part") if name == "whole" else ("id",)

        def key_of(row: Event) -> str:
            return json.dumps([row[key] for key in key_names])

        folded: dict[str, Event] = {}
        for event in events:
            after, op = event["after"], event["op"]
            if op == "t":
                folded.clear()
                continue
            key = key_of(event["key"])
            if op == "d":
                if folded.pop(key, None) is None:
                    verdict.add("lost", f"{name}: a delete of no row: {event}"[:300])
            elif op in "cr":
                if key in folded:
                    verdict.add("duplicate", f"{name}: a row that is there: {event}"[:300])
                folded[key] = after
            elif key not in folded:
                verdict.add("lost", f"{name}: an update of no row: {event}"[:300])
            else:
                kept = {column: folded[key].get(column) for column in event.get("unchanged", ())}
                folded[key] = after | kept
        expected = {key_of(row): row for row in rows}
        for key in expected.keys() | folded.keys():
            row, found = expected.get(key), folded.get(key)
            if row is None or found is None:
                verdict.add(
                    "lost" if found is None else "untrue", f"{name} {key}: {row} / {found}"[:300]
                )
            elif differs := [c for c in row if _plain(row[c]) != _plain(found.get(c))]:
                verdict.add("untrue", f"{name} {key}: {differs} of {row} / {found}"[:300])
        self._judge_audit(verdict, name, events, audit, key_of)

    def _judge_audit(
        self, verdict: Verdict, name: str, events: list[Event], audit: list[Any], key_of: Any
    ) -> None:
        """Compare the events since the last copy with the end of the audit, key by key."""
        begin = max(
            (i + 1 for i, event in enumerate(events) if event["source"]["snapshot"] == "true"),
            default=0,
        )
        told: dict[str, list[Any]] = defaultdict(list)
        noted: dict[str, list[Any]] = defaultdict(list)
        for event in events[begin:]:
            op = event["op"]
            if op == "t":
                for changes in told.values():
                    changes.append("t")
            else:
                version = None if op == "d" else event["after"]["ver"]
                told[key_of(event["key"])].append((op, version))
        keys = [key_of(row) for _, old, new in audit for row in (old, new) if row is not None]
        noted.update({key: [] for key in keys})
        for op, old, new in audit:
            if op == "TRUNCATE":
                for changes in noted.values():
                    changes.append("t")
            elif op == "DELETE":
                noted[key_of(old)].append(("d", None))
            elif op == "INSERT":
                noted[key_of(new)].append(("c", new["ver"]))
            elif key_of(old) == key_of(new):
                noted[key_of(new)].append(("u", new["ver"]))
            else:
                noted[key_of(old)].append(("d", None))
                noted[key_of(new)].append(("c", new["ver"]))
        self.events["audited"] += len(audit)
        for key, changes in told.items():
            if noted[key][-len(changes) :] != changes:
                verdict.add("order", f"{name} {key}: {changes[-9:]}, audit {noted[key][-9:]}")


def _plain(value: object) -> object:
    """Numbers are numbers in the audit, and decimals texts in events."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(float(value))
    if isinstance(value, str) and value[:1].isdigit() and len(value) < 30:
        try:
            return str(float(value))
        except ValueError:
            return value
    return value


def run(cycles: int, seed: int) -> Report:
    """Kill so many times."""
    if reason := unavailable():
        return Report("postgres", seed, skipped=reason)
    verdict = Verdict()
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        torture = PostgresTorture(server, Path(folder), seed)
        torture.run(cycles)
        torture.judge(verdict)
    must_fire: tuple[str, ...] = ("audited", "events")
    if cycles >= 30:
        must_fire += (
            *(f"killed_{kind}" for kind in set(KILLS)),
            *("op_c", "op_u", "op_d", "op_r", "op_t"),
            "unchanged",
            "add",
            "drop",
        )
    return Report(
        kind="postgres",
        seed=seed,
        cycles=cycles,
        verdict=verdict,
        faults=torture.events + torture.workload.done,
        must_fire=must_fire,
    )
