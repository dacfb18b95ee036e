"""Pipes of a real node, with Spark: every row of every file once, although the node is killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import frazil
from tests.clients.node import Node

WAIT_S = 180
"""A node starts, and Spark with it, perhaps on a busy machine."""
PIPE = (
    "CREATE PIPE p ON NEW FILES AS COPY INTO orders FROM (SELECT n, n * 2 AS twice FROM @s/) "
    "VALIDATE (UNIQUE (n))"
)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def test_every_row_once_although_the_node_is_killed(tmp_path: Path) -> None:
    files, config = tmp_path / "in", tmp_path / "frazil.toml"
    files.mkdir()
    config.write_text(f'[stages]\nroots = ["{files}"]\npoll_interval_ms = 200\n')
    count = 0

    def put(rows: int) -> None:
        nonlocal count
        scratch = tmp_path / "scratch"
        scratch.write_text("".join(f'{{"n":{n}}}\n' for n in range(count, count + rows)))
        scratch.rename(files / f"{count}.ndjson")
        count += rows

    node = Node(tmp_path / "data", "--config", str(config))
    client = frazil.connect(node.url)
    with node:
        client.execute(f"CREATE STAGE s URL='file://{files}'").arrow()
        put(20_000)
        client.execute(PIPE).arrow()

        def outcomes() -> list[str]:
            rows = client.sql("SELECT outcome FROM pipe_history ORDER BY run_id, attempt")
            return [row[0] for row in rows.fetchall()]

        until(lambda: outcomes() == ["running"])  # Spark starts
        node.kill()
        node.start()
        assert outcomes()[0] == "interrupted"
        client.execute("RESUME PIPE p").arrow()  # without the pause before a retry
        until(lambda: outcomes() == ["interrupted", "ok"])
        put(1000)
        until(lambda: outcomes() == ["interrupted", "ok", "ok"])
        wanted = (count, count, count * (count - 1))
        query = "SELECT count(*), count(DISTINCT n), sum(twice) FROM orders"
        assert client.sql(query).fetchall() == [wanted]
        (shown,) = client.execute("SHOW PIPES").arrow().to_pylist()
        assert (shown["state"], shown["last_rows"], shown["failures"]) == ("waiting", 1000, 0)
        loaded = client.sql("SELECT sum(rows), count(*) FROM copy_history").fetchall()
        assert loaded == [(count, 2)]
