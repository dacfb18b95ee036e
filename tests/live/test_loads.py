"""A load of a real node on Spark: its progress, a cancel amid its tasks, a bar on a terminal."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.errors import Unavailable
from tests.cli.pseudo_terminal import Terminal
from tests.clients.node import COMMAND, Node

ROWS = 600_000
WAIT_S = 300
COPY = "COPY INTO orders FROM @files"


def test_progress_and_cancel(tmp_path: Path) -> None:
    """A cancelled load leaves no table; the next one loads every row once, and shows how far it
    is."""
    roots = tmp_path / "in"
    roots.mkdir()
    line = '{{"id":{},"name":"customer {}","amount":{}.25}}\n'
    (roots / "a.ndjson").write_text("".join(line.format(n, n, n) for n in range(ROWS)))
    settings = tmp_path / "frazil.toml"
    settings.write_text(f'[stages]\nroots = ["{roots}"]\n')
    with Node(tmp_path / "data", "--config", str(settings)) as node:
        client = frazil.connect(node.url)
        client.execute(f"CREATE STAGE files URL='file://{roots}'").arrow()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(lambda: client.execute(COPY).arrow())
            load = await_rows(client)
            assert load["statement"] == COPY and load["files"] == 1
            assert 0 < load["bytes_done"] <= load["bytes"] == (roots / "a.ndjson").stat().st_size
            assert 0 < load["rows_done"] <= ROWS
            assert client.call("DELETE", f"/api/v1/loads/{load['id']}")["is_cancelled"]
            with pytest.raises(Unavailable, match="cancelled: nothing was changed"):
                running.result(WAIT_S)
        assert client.get("/api/v1/loads") == {"loads": []}
        assert client.sql("SELECT count(*) FROM copy_history").fetchall() == [(0,)]
        command = [*COMMAND, "sql", COPY, "--url", node.url]
        with Terminal(command, columns=160, env={}) as terminal:
            terminal.read_until("loading files", "rows", "a.ndjson")
            assert terminal.wait() == 0
        assert client.sql("SELECT count(*), max(id) FROM orders").fetchall() == [(ROWS, ROWS - 1)]
        scratch = tmp_path / "data" / "lake" / "scratch"
        assert not list(scratch.glob("load-*"))


def await_rows(client: Any) -> dict[str, Any]:
    """Wait until the tasks of a load count rows."""
    deadline = time.monotonic() + WAIT_S
    while True:
        for load in client.get("/api/v1/loads")["loads"]:
            if load["step"] == "loading files" and load["rows_done"]:
                found: dict[str, Any] = load
                return found
        assert time.monotonic() < deadline
        time.sleep(0.05)
