"""Runs one family of hostile SQL in a process of its own and prints the outcome as JSON.

python -m tests.query.hostile_run FAMILY FOLDER URL
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frazil.errors import FrazilError
from frazil.query import Engine
from frazil.settings import QueryConfig
from tests.query import hostile
from tests.query.build import engine_over, log, piece_of, shared

SECRET = "the-canary-sings"
TIMEOUT_MS = {"GREEDY": 1500, "WICKED": 1500}
"""Short timeout for queries that never end; all others end by themselves."""
TIMEOUT_MS_ELSE = 20_000
MEMORY_BYTES_MAX = 64 * 1024 * 1024
BATCH_ROWS, BATCHES = 2000, 50
THREADS = 3


class Scale:
    """Samples the memory of this process and its children twenty times a second."""

    def __init__(self) -> None:
        self.own_max = 0
        self.child_max = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._weigh)
        self._thread.start()

    def _weigh(self) -> None:
        while not self._is_over.wait(0.05):
            self.own_max = max(self.own_max, private_bytes("self"))
            for child in children():
                self.child_max = max(self.child_max, private_bytes(child))

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()


def private_bytes(pid: str) -> int:
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * 4096


def children() -> list[str]:
    """Return the processes below this one: the fork server and its workers."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1]
        except OSError:
            continue
        parents[stat.parent.name] = parent
    below = {str(os.getpid())}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sorted(below - {str(os.getpid())})


@contextmanager
def loaded_engine(timeout_ms: int) -> Iterator[Engine]:
    rows = [log(at, body=f"line {at} abc", trace_id=f"{at:032x}") for at in range(BATCH_ROWS)]
    piece = shared(piece_of("logs", rows, is_known=False), BATCHES)
    config = QueryConfig(
        timeout_ms=timeout_ms,
        memory_bytes_max=MEMORY_BYTES_MAX,
        rows_max=10_000,
        concurrency_max=THREADS,
    )
    with engine_over({"logs": [piece]}, config) as engine:
        while attempt(engine, "SELECT 1")["outcome"] != "rows":
            time.sleep(0.1)  # the process that workers are forked from is loading
        yield engine


def attempt(engine: Engine, text: str) -> dict[str, Any]:
    begin = time.monotonic()
    shown = ""
    try:
        with engine.sql(text) as result:
            for batch in result:
                shown += str(batch.slice(0, 1000).to_pylist())
        outcome = "rows"
    except FrazilError as error:
        outcome, shown = type(error).__name__, str(error)
    return {
        "text": text[:200],
        "outcome": outcome,
        "message": shown[:300],
        "seconds": time.monotonic() - begin,
        "has_secret": SECRET in shown,
    }


def state(engine: Engine) -> list[Any]:
    """Return the state that a query could have changed."""
    return [
        engine.sql("SELECT count(*), min(body), max(body) FROM logs").fetchall(),
        sorted(engine.sql("SHOW TABLES").fetchall()),
        sorted(engine.sql("SHOW ALL").fetchall()),
        engine.sql("DESCRIBE logs").fetchall(),
    ]


def settle() -> float:
    """Return the seconds until this process is idle."""
    begin = time.monotonic()
    for _ in range(100):
        before = time.process_time()
        time.sleep(0.1)
        if time.process_time() - before < 0.05:
            break
    return time.monotonic() - begin


def main(family: str, folder: str, url: str) -> None:
    texts = [
        text.replace("{folder}", folder).replace("{url}", url) for text in getattr(hostile, family)
    ]
    with loaded_engine(TIMEOUT_MS.get(family, TIMEOUT_MS_ELSE)) as engine:
        before = state(engine)
        own_before = private_bytes("self")
        scale = Scale()
        with ThreadPoolExecutor(THREADS) as pool:
            attempts = list(pool.map(lambda text: attempt(engine, text), texts))
        scale.close()
        settled_s = settle()
        report = {
            "attempts": attempts,
            "settled_s": settled_s,
            "is_unchanged": state(engine) == before,
            "own_growth": scale.own_max - own_before,
            "child_max": scale.child_max,
        }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
