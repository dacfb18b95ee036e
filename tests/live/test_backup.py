"""The commands of docs/operating.md, as they are written there: a backup of a node under load, and
a second node on the restored folder beside the first."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

import frazil
from frazil.model import KiB, MiB
from tests.clients.node import Node
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http
from tests.lake.catalog.test_relocate import contents
from tests.pages import ROOT, blocks_of, commands_of

SETTINGS = {
    "FRAZIL_LOG__SEGMENT_BYTES_MAX": 64 * KiB,
    "FRAZIL_LOG__BATCH_BYTES_MAX": 1 * MiB,
    "FRAZIL_LOG__DISK_BYTES_MAX": 2 * MiB,
    "FRAZIL_INGEST__BODY_BYTES_MAX": 256 * KiB,
    "FRAZIL_INGEST__JSON_BYTES_MAX": 256 * KiB,
    "FRAZIL_LAKE__DRIVER_MEMORY_BYTES": 512 * MiB,
    "FRAZIL_LAKE__FLUSH_AGE_MS": 1000,
}
"""A log that is trimmed and reused all the time: it holds a few seconds of the load."""
BODY_CHARACTERS = 6000
WARM_UP = 600
"""Requests before the backup: more than the log can hold."""
WAIT_S = 240
ALL = "SELECT event_name FROM logs"


class Load:
    """Sends numbered requests, each until it is acknowledged, and has the tables maintained."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._is_stopping = threading.Event()
        self.acknowledged: list[str] = []
        self.maintained = 0
        self._threads = [threading.Thread(target=work) for work in (self._send, self._maintain)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping.set()
        for thread in self._threads:
            thread.join(WAIT_S)

    def _send(self) -> None:
        number = 0
        while not self._is_stopping.is_set():
            name = f"event-{number}"
            record = log(number, event_name=name)
            record.body.string_value = f"{number} " * (BODY_CHARACTERS // len(f"{number} "))
            headers = {"Content-Type": PROTOBUF}
            answer = send_http(self._node.http_port, "/v1/logs", logs(record), headers)
            if answer.status == 200:
                self.acknowledged.append(name)
                number += 1
            else:
                assert answer.status == 429, answer
                self._is_stopping.wait(0.05)

    def _maintain(self) -> None:
        client = frazil.connect(self._node.url)
        while not self._is_stopping.wait(0.5):
            client.flush()
            client.maintain()
            self.maintained += 1

    def await_count(self, count: int) -> None:
        """Wait until so many requests are acknowledged and the tables were maintained once."""
        waited = threading.Event()
        for _ in range(WAIT_S * 10):
            if len(self.acknowledged) >= count and self.maintained:
                return
            assert all(thread.is_alive() for thread in self._threads)
            waited.wait(0.1)
        raise AssertionError(f"{len(self.acknowledged)} of {count}, {self.maintained} rounds")


def commands() -> list[str]:
    """Return the commands of the page that make and restore a backup, in order."""
    (block,) = (
        block
        for block in blocks_of(ROOT / "docs" / "operating.md", "sh")
        if "frazil backup " in block.text
    )
    return commands_of(block.text)


def names_in(node: Node) -> Counter[str]:
    rows = frazil.connect(node.url).sql(ALL).fetchall()
    return Counter(row[0] for row in rows)


def start_offset(folder: Path) -> int:
    """Return the offset of the oldest segment of the log."""
    return min(int(path.stem) for path in (folder / "log/otlp_logs/0").glob("*.log"))


def test_the_documented_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was acknowledged before is restored, once. The second node takes nothing from the
    first, whose tables stay as they are byte for byte, and neither from the backup."""
    program = tmp_path / "bin" / "frazil"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m frazil "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, str(value))
    *preparing, starting = commands()
    assert [shlex.split(command)[1] for command in preparing] == ["backup", "restore", "restore"]
    with Node(tmp_path / "data") as first:
        with Load(first) as load:
            load.await_count(WARM_UP)
            assert start_offset(tmp_path / "data") > 0, "the log is trimmed"
            before = list(load.acknowledged)
            for command in preparing:
                done = subprocess.run(
                    ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True
                )
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            load.await_count(len(before) + 50)
        assert shlex.split(starting, comments=True) == [
            *("frazil", "up", "--data", "restored"),
            *("--otlp-grpc-port", "0", "--otlp-http-port", "0", "--http-port", "0"),
            *("--kafka-port", "0", "--flight-port", "0"),
        ], "as the second node is started here"
        with Node(tmp_path / "restored") as second:
            found = names_in(second)
            assert set(found.values()) == {1}, "exactly once"
            assert set(before) <= set(found) <= set(load.acknowledged)
            frazil.connect(first.url).flush()
            lake, saved = contents(tmp_path / "data/lake/warehouse"), contents(tmp_path / "backups")
            body = logs(log(0, event_name="only in the second"))
            answer = send_http(second.http_port, "/v1/logs", body, {"Content-Type": PROTOBUF})
            assert answer.status == 200
            client = frazil.connect(second.url)
            client.flush()
            assert all(not table.trouble for table in client.maintain())
            assert names_in(second) == found + Counter(["only in the second"])
            assert contents(tmp_path / "data/lake/warehouse") == lake
            assert contents(tmp_path / "backups") == saved
            assert second.stop() == 0
        assert names_in(first) == Counter(load.acknowledged)
        assert first.stop() == 0
