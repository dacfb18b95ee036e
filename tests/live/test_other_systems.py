"""A node on a system without the calls that only Linux has, as macOS is. Simulated: the calls are
removed from a real node's processes. Nobody has run Frazil on macOS."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

import frazil
from tests.clients.node import Node
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http

WITHOUT_LINUX = """
import ctypes, os, pathlib, signal

for module, names in (
    (os, "fdatasync posix_fadvise O_DIRECT eventfd eventfd_read eventfd_write memfd_create"),
    (os, "pidfd_open sched_getaffinity sched_setaffinity copy_file_range splice sendfile"),
    (signal, "pidfd_send_signal"),
):
    for name in names.split():
        delattr(module, name)


class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("prctl", "adjtimex"):
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = Library


def hide(method):
    real = getattr(pathlib.Path, method)

    def seen(self, *arguments, **options):
        if str(self).startswith("/proc"):
            if method in ("exists", "is_dir"):
                return False
            raise FileNotFoundError(2, "no such file", str(self))
        return real(self, *arguments, **options)

    setattr(pathlib.Path, method, seen)


for method in ("read_text", "read_bytes", "exists", "is_dir", "iterdir"):
    hide(method)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_LINUX)
    return {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}


def _rows(node: Node, count: int) -> list[tuple[object, ...]]:
    """Wait until that many rows are visible."""
    client = frazil.connect(node.url)
    while True:
        rows = client.sql("SELECT event_name FROM logs ORDER BY 1").fetchall()
        if len(rows) >= count:
            return rows
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def test_a_node_without_linux_calls(tmp_path: Path, environment: dict[str, str]) -> None:
    """It stores, shows, is killed, ends its reader with it, and has every row after a restart."""
    options = ("--set", "lake.enabled=false")
    with Node(tmp_path / "data", *options, environment=environment) as node:
        for name in ("a", "b"):
            body = logs(log(1, event_name=name))
            answer = send_http(node.http_port, "/v1/logs", body, {"Content-Type": PROTOBUF})
            assert answer.status == 200
        assert _rows(node, 2) == [("a",), ("b",)]
        status = frazil.connect(node.url).get("/api/v1/status")
        processes = {each["process"]: each["pid"] for each in status["processes"]}
        node.kill()
        while _is_alive(processes["reader"]):
            time.sleep(0.05)
        node.start()
        assert _rows(node, 2) == [("a",), ("b",)]
        with pytest.raises(frazil.errors.FrazilError):  # the worker is killed, the next one works
            frazil.connect(node.url).sql("SELECT no_such_column FROM logs").fetchall()
        assert _rows(node, 2) == [("a",), ("b",)]
        assert node.stop() == 0
        assert "Traceback" not in node.errors(), json.dumps(node.errors())
