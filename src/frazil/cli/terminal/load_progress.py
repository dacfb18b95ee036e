"""The progress of a COPY on a terminal: a bar over the bytes of its files."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from frazil.cli.terminal.progress import ProgressLine, amount
from frazil.errors import FrazilError
from frazil.model import SystemClock

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.embedded import Embedded

INTERVAL_S = 0.3
"""Interval between looks."""
HEADS = ("copy", "describe", "desc", "validate")


@contextmanager
def load_progress(node: Embedded | Client, text: str) -> Iterator[None]:
    """Show the progress of a statement on standard error while the block runs, if that is a
    terminal and the statement reads files."""
    words = text.split(None, 1)
    if not sys.stderr.isatty() or not words or words[0].lower() not in HEADS:
        yield
        return
    is_done = threading.Event()
    with ProgressLine("load", unit="B", clock=SystemClock()) as line:
        thread = threading.Thread(
            target=_show, args=(line, _look(node, text), is_done), name="frazil-load", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            is_done.set()
            thread.join()
            line.wipe()


def _show(
    line: ProgressLine, look: Callable[[], dict[str, Any] | None], is_done: threading.Event
) -> None:
    while not is_done.wait(INTERVAL_S):
        with suppress(FrazilError):  # the statement itself reports what is wrong
            found = look()
            if found is not None:
                line.update(found["bytes_done"], _note(found), total=found["bytes"])


def _note(load: dict[str, Any]) -> str:
    parts = [load["step"], f"{load['files_done']} of {load['files']} files"]
    if load["rows_done"]:
        parts.append(amount(load["rows_done"], "rows"))
    return ", ".join(parts)


def _look(node: Embedded | Client, text: str) -> Callable[[], dict[str, Any] | None]:
    """Return a function that looks for the newest running load with this text."""
    wanted = _plain(text)

    def look() -> dict[str, Any] | None:
        found = [load for load in _loads(node) if _plain(load["statement"]) == wanted]
        return found[-1] if found else None

    return look


def _loads(node: Embedded | Client) -> list[dict[str, Any]]:
    from frazil.client import Client

    if not isinstance(node, Client):
        return _local(node)
    loads: list[dict[str, Any]] = node.get("/api/v1/loads")["loads"]
    return loads


def _local(node: Embedded) -> list[dict[str, Any]]:
    running = () if node.loader is None else node.loader.running()
    return [
        {
            "statement": each.statement,
            "step": each.step,
            "files": each.file_count,
            "bytes": each.size_bytes,
            "files_done": (done := each.done()).file_count,
            "bytes_done": done.size_bytes,
            "rows_done": done.row_count,
        }
        for each in running
    ]


def _plain(text: str) -> str:
    return " ".join(text.strip().rstrip(";").split())
