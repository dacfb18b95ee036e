"""Waiting for work that a node or Spark does, and showing meanwhile how far it is."""

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

LOOK_S = 0.5
"""Between two looks at how far it is."""

T = TypeVar("T")
Look = Callable[[], str]


def waited(what: str, work: Callable[[], T], look: Look | None, *, is_quiet: bool) -> T:
    """Do something that takes long. Meanwhile, what `look` says is shown on standard error, with
    how long it has taken; nothing is when `is_quiet`."""
    clock = SystemClock()
    is_over = threading.Event()
    with ProgressLine(what, clock=clock, is_quiet=is_quiet) as progress:
        telling = threading.Thread(
            target=_tell, args=(progress, look, clock, is_over), name="frazil-waiting", daemon=True
        )
        telling.start()
        try:
            return work()
        finally:
            is_over.set()
            telling.join()


def _tell(
    progress: ProgressLine, look: Look | None, clock: Clock, is_over: threading.Event
) -> None:
    begun_ns = clock.monotonic_ns()
    while not is_over.wait(LOOK_S):
        said = ""
        if look is not None:
            with suppress(FrazilError):  # the work itself will say what is wrong
                said = look()
        seconds = (clock.monotonic_ns() - begun_ns) / (1000 * NS_PER_MS)
        progress.update(0, "  ".join(filter(None, (age_text(seconds), said))))


def lake_lag(node: Client) -> Look:
    """Says what a node has still to bring into tables, and how its Spark is."""

    def look() -> str:
        lake = node.get("/api/v1/status")["lake"]
        if lake is None:
            return ""
        parts = [f"Spark {lake['spark']['state']}"]
        if lake["lag_bytes"] is not None:
            parts.append(f"{bytes_text(lake['lag_bytes'])} not in tables yet")
        return ", ".join(parts)

    return look
