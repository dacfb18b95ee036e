"""Run long work of a node or of Spark while showing its progress."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from frazil.cli.terminal.progress import ProgressLine
from frazil.cli.terminal.units import age_text, bytes_text
from frazil.errors import FrazilError
from frazil.model import NS_PER_MS, Clock, SystemClock

if TYPE_CHECKING:
    from frazil.client import Client

INTERVAL_S = 0.5
"""Interval between status queries."""

T = TypeVar("T")
Look = Callable[[], str]


def run_with_progress(what: str, work: Callable[[], T], look: Look | None, *, is_quiet: bool) -> T:
    """Run `work` and return its result. Meanwhile show elapsed time and the text of `look` on
    standard error, unless `is_quiet`."""
    clock = SystemClock()
    is_done = threading.Event()
    with ProgressLine(what, clock=clock, is_quiet=is_quiet) as progress:
        thread = threading.Thread(
            target=_show, args=(progress, look, clock, is_done), name="frazil-waiting", daemon=True
        )
        thread.start()
        try:
            return work()
        finally:
            is_done.set()
            thread.join()


def _show(
    progress: ProgressLine, look: Look | None, clock: Clock, is_done: threading.Event
) -> None:
    start_ns = clock.monotonic_ns()
    while not is_done.wait(INTERVAL_S):
        text = ""
        if look is not None:
            with suppress(FrazilError):  # `work` itself reports what is wrong
                text = look()
        seconds = (clock.monotonic_ns() - start_ns) / (1000 * NS_PER_MS)
        progress.update(0, "  ".join(filter(None, (age_text(seconds), text))))


def lake_lag(node: Client) -> Look:
    """Return a function that describes the lake lag of a node and the state of Spark."""

    def look() -> str:
        lake = node.get("/api/v1/status")["lake"]
        if lake is None:
            return ""
        parts = [f"Spark {lake['spark']['state']}"]
        if lake["lag_bytes"] is not None:
            parts.append(f"{bytes_text(lake['lag_bytes'])} lake lag")
        return ", ".join(parts)

    return look
