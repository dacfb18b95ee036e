"""The system clock: records, retention and certificates depend on it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from frazil.doctor.checks.processes import find_program
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, Fix, do, failure, note, ok, run_as_root

EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
"""Frazil did not exist before."""
BEHIND_MS_MAX = 5000
"""Network file systems have their own clock."""
TIMEX_BYTES = 512
STATUS_POSITION = 40
"""Of the status in the kernel's struct timex, on 64-bit systems."""
UNSYNCHRONIZED = 0x40


def check_clock(context: CheckContext) -> Iterator[Finding]:
    """Check that it is not before the newest file, and that it follows a time server."""
    now_ms = context.clock.wall_ms()
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    newest_ms, newest = _newest(context.data) if context.is_open else (0, None)
    if now < EARLIEST:
        yield failure("clock", f"it is {_text(now)}, which is in the past", _set_clock())
    elif newest is not None and newest_ms > now_ms + BEHIND_MS_MAX:
        written = _text(datetime.fromtimestamp(newest_ms / 1000, UTC))
        text = f"it is {_text(now)}, but {newest} was written at {written}: the clock went back"
        yield failure("clock", text, _set_clock())
    elif is_synchronized() is False:
        yield note(
            "clock", f"it is {_text(now)}, not synchronized with a time server", _set_clock()
        )
    else:
        yield ok("clock", f"it is {_text(now)}")


def is_synchronized() -> bool | None:
    """Return whether the kernel follows a time server; None if unknown."""
    library = ctypes.CDLL(None, use_errno=True)
    adjust = getattr(library, "adjtimex", None)
    buffer = ctypes.create_string_buffer(TIMEX_BYTES)
    if adjust is None or ctypes.sizeof(ctypes.c_long) != 8 or adjust(buffer) < 0:
        return None
    status = ctypes.c_int.from_buffer(buffer, STATUS_POSITION).value
    return not status & UNSYNCHRONIZED


def _newest(data: Path) -> tuple[int, Path | None]:
    """Return the newest file of log and catalog, and when it was written."""
    newest: tuple[int, Path | None] = (0, None)
    for path in [*(data / "log").glob("*/*/*"), *(data / "lake").glob("catalog.db*")]:
        try:
            written_ms = path.stat().st_mtime_ns // 10**6
        except FileNotFoundError:
            continue  # deleted meanwhile
        newest = max(newest, (written_ms, path), key=lambda entry: entry[0])
    return newest


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _set_clock() -> Fix:
    if find_program("timedatectl", os.environ) is not None:
        return run_as_root("timedatectl set-ntp true")
    return do("set the clock and synchronize it with a time server")
