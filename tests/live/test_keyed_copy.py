"""COPY INTO a keyed table of a real node, on Spark: killed amid the load, then frozen."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import frazil
from frazil.errors import FrazilError
from frazil.lake import open_catalog
from frazil.settings import LakeConfig
from tests.clients.node import Node
from tests.live.test_processes import eventually, processes

ROWS = 120_000
KEYS = 1_000
WAIT_S = 300


def test_a_load_survives_kills_and_is_frozen(tmp_path: Path) -> None:
    """The reader dies amid the steps, then the whole node; each row is in the log once, and Iceberg
    has the last ones."""
    roots = tmp_path / "in"
    roots.mkdir()
    for file in range(2):
        numbers = range(file * ROWS // 2, (file + 1) * ROWS // 2)
        text = "".join(f'{{"id":{n % KEYS},"n":{n},"text":"{n:060d}"}}\n' for n in numbers)
        (roots / f"{file}.ndjson").write_text(text)
    settings = tmp_path / "frazil.toml"
    settings.write_text(f'[stages]\nroots = ["{roots}"]\n')
    data = tmp_path / "data"
    pending = data / "tables" / "t" / "loads" / "pending.ckpt"
    with Node(data, "--config", str(settings)) as node:
        client = frazil.connect(node.url)
        client.execute(f"CREATE STAGE files URL='file://{roots}'").arrow()
        client.execute(
            "CREATE TABLE t (id BIGINT, n BIGINT, text VARCHAR, PRIMARY KEY (id)) PARTITIONS 2"
        ).arrow()
        copying = Copying(node)
        eventually_in(WAIT_S, pending.exists)
        os.kill(processes(node)["reader"], signal.SIGKILL)
        copying.join()
        if pending.exists():  # the next reader goes on; the log may die meanwhile
            node.kill()
            node.start()
            client = frazil.connect(node.url)
        eventually(lambda: loaded(client) == [(ROWS // 2,), (ROWS // 2,)])
        assert not pending.exists()
        assert client.execute("COPY INTO t FROM @files").fetchall() == []
        counts = "SELECT count(*), count(DISTINCT n), min(n), max(n) FROM changes('t', {})"
        counts = counts.format("""'{"0": 0, "1": 0}'""")
        assert client.sql(counts).fetchall() == [(ROWS, ROWS, 0, ROWS - 1)]
        last = (KEYS, ROWS - KEYS, ROWS - 1)
        assert client.sql("SELECT count(*), min(n), max(n) FROM t").fetchall() == [last]
        client.flush()
    with closing(open_catalog(LakeConfig(), data)) as catalog:
        frozen = catalog.load_table((LakeConfig().namespace, "t")).scan().to_arrow()
    assert sorted(frozen["n"].to_pylist()) == list(range(ROWS - KEYS, ROWS))


class Copying:
    """A COPY that runs beside the test."""

    def __init__(self, node: Node) -> None:
        self.error: FrazilError | None = None
        self._client = frazil.connect(node.url)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._client.execute("COPY INTO t FROM @files").arrow()
        except FrazilError as error:
            self.error = error

    def join(self) -> None:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


def loaded(client: Any) -> list[tuple[int, ...]]:
    try:
        found: list[tuple[int, ...]] = client.sql(
            "SELECT rows FROM copy_history WHERE table_name = 't' ORDER BY uri"
        ).fetchall()
    except FrazilError:
        return []
    return found


def eventually_in(seconds: float, is_true: Any) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.002)
