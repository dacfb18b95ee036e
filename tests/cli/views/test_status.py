"""`frazil status`: latencies and the current lake job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from frazil.cli.terminal.colors import Colors
from frazil.cli.views.status import screen
from frazil.serve import checks_of, status_of
from frazil.status import is_ready
from tests.serve.open_rooms import open_rooms

COLUMNS = 120


def lines_of(status: dict[str, Any]) -> list[str]:
    return list(screen(status, "http://127.0.0.1:4320", COLUMNS, Colors(is_on=False)))


def test_latencies_and_the_lake_job_are_shown_if_present(tmp_path: Path) -> None:
    with open_rooms(tmp_path, has_lake=True) as rooms:
        checks = checks_of(rooms)
        status: dict[str, Any] = {
            **msgspec.to_builtins(status_of(rooms)),
            "checks": msgspec.to_builtins(checks),
            "is_ready": is_ready(checks),
        }
    status["log"]["syncing"] = None
    assert not any("sync " in line for line in lines_of(status))
    assert lines_of(status)[-1] == "spark       not_started"
    status["log"]["syncing"] = {"count": 3, "p50_ms": 0.512, "p99_ms": 12.3}
    status["ingest"]["acknowledging"] = None
    status["lake"]["doing"] = {
        "work": "round",
        "step": "committing",
        "table": "logs",
        "begun_ms": 0,
        "age_s": 3.0,
        "task_count": 2,
        "log_bytes": 1024 * 1024,
        "done_bytes": 0,
        "done_rows": 0,
    }
    status["pipes"] = [
        {
            "pipe": "orders",
            "state": "failing",
            "is_failing": True,
            "failures": 2,
            "last_error": "UNIQUE (id):\nfound id = 1",
            "next_in_s": 12.0,
        },
        {"pipe": "p", "state": "waiting", "is_failing": False, "next_in_s": 90.0},
    ]
    at = lines_of(status).index("pipes       1 failing, 1 waiting; next run in 12s")
    wanted = "            orders failed 2 times: UNIQUE (id): found id = 1"
    assert lines_of(status)[at + 1] == wanted
    status["pipes"] = []
    lines = lines_of(status)
    assert "            sync 0.512 ms (p99 12.3 ms); acknowledge -; 0 batches queued" in lines
    assert lines[-1].startswith("spark       not_started; round: committing (logs), 1")
