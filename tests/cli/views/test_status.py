"""`frazil status`: what takes long, and what the lake does now, in a line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from frazil.cli.terminal.colors import Colors
from frazil.cli.views.status import screen
from frazil.serve import checks_of, is_ready, status_of
from tests.serve.open_rooms import open_rooms

COLUMNS = 120


def shown(found: dict[str, Any]) -> list[str]:
    return list(screen(found, "http://127.0.0.1:4320", COLUMNS, Colors(is_on=False)))


def test_latencies_and_the_round_in_hand_are_told(tmp_path: Path) -> None:
    """Where there are some; nothing is said of what did not happen."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        checks = checks_of(rooms)
        found: dict[str, Any] = {
            **msgspec.to_builtins(status_of(rooms)),
            "checks": msgspec.to_builtins(checks),
            "is_ready": is_ready(checks),
        }
    found["log"]["syncing"] = None
    assert not any("to sync" in line for line in shown(found))
    assert shown(found)[-1] == "spark       not_started"
    found["log"]["syncing"] = {"count": 3, "p50_ms": 0.512, "p99_ms": 12.3}
    found["ingest"]["acknowledging"] = None
    found["lake"]["doing"] = {
        "work": "round",
        "step": "commits",
        "table": "logs",
        "begun_ms": 0,
        "age_s": 3.0,
        "task_count": 2,
        "log_bytes": 1024 * 1024,
        "done_bytes": 0,
        "done_rows": 0,
    }
    lines = shown(found)
    assert "            0.512 to 12.3 ms to sync, - to acknowledge; 0 wait" in lines
    assert lines[-1].startswith("spark       not_started; round: commits (logs), 1")
