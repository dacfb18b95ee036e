"""Altered responses of the node, to show states that a test cannot produce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Error, Page, Route

SNAPSHOT = 9007199254740993123
"""Larger than a JavaScript number can hold."""
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x00" + "x" * 500


def alter_response(page: Page, path: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Pass responses of an API path through `change`."""

    def handle(route: Route) -> None:
        try:
            response = route.fetch()
            body = response.json()
            change(body)
            route.fulfill(response=response, json=body)
        except Error:
            return  # The test ended and closed the page during a request.

    page.route(f"**/api/v1/{path}", handle)


def lake_status() -> dict[str, Any]:
    """Return the status of a lake during an append."""
    commit = {
        "table": "spans",
        "snapshot_id": SNAPSHOT,
        "snapshot": str(SNAPSHOT),
        "operation": "append",
        "added_rows": 1234,
        "committed_ms": 1_794_839_000_000,
        "age_s": 12.0,
    }
    progress = {
        "work": "round",
        "step": "writing files",
        "table": None,
        "begun_ms": 1_794_839_000_000,
        "age_s": 3.0,
        "task_count": 3,
        "log_bytes": 4 * 1024 * 1024,
        "done_bytes": 1024 * 1024,
        "done_rows": 10,
    }
    table = {"table": "spans", "snapshot_id": SNAPSHOT, "rows": 5000, "bytes": 1_000_000}
    return {
        "spark": {"state": "running", "pid": 4711, "trouble": None},
        "lag_bytes": 3 * 1024 * 1024,
        "lag_age_s": 30.0,
        "flush_bytes": 128 * 1024 * 1024,
        "flush_age_ms": 60_000,
        "doing": progress,
        "last_commit": commit,
        "commits": [commit],
        "tables": [{**table, "files": 9, "small_files": 7}],
        "trouble": None,
        "given_up": None,
    }
