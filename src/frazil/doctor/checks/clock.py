"""The clock: records carry its time, retention goes by it, certificates end by it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from frazil.doctor.checks.processes import find_program
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, Fix, do, failure, note, run_as_root, well

MADE = datetime(2026, 1, 1, tzinfo=UTC)
"""There was no Frazil before."""
BEHIND_MS_MAX = 5000
"""File systems of other machines have clocks of their own."""
TIMEX_BYTES = 512
STATUS_POSITION = 40
"""In the kernel's struct timex, where words have 64 bits."""
UNSYNCHRONISED = 0x40


def check_clock(case: CheckContext) -> Iterator[Finding]:
    """Not before this program was made, nor before the newest file; and does it follow others?"""
    now_ms = case.clock.wall_ms()
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    newest_ms, newest = _newest(case.data) if case.is_open else (0, None)
    if now < MADE:
        yield failure("clock", f"it is {_text(now)}, before Frazil was made", _mend())
    elif newest is not None and newest_ms > now_ms + BEHIND_MS_MAX:
        written = _text(datetime.fromtimestamp(newest_ms / 1000, UTC))
        found = f"it is {_text(now)}, but {newest} was written at {written}: it went back"
        yield failure("clock", found, _mend())
    elif is_synchronised() is False:
        yield note("clock", f"it is {_text(now)}, and no time server is followed", _mend())
    else:
        yield well("clock", f"it is {_text(now)}")


def is_synchronised() -> bool | None:
    """Does the kernel follow a time server? None where it does not say."""
    library = ctypes.CDLL(None, use_errno=True)
    adjust = getattr(library, "adjtimex", None)
    buffer = ctypes.create_string_buffer(TIMEX_BYTES)
    if adjust is None or ctypes.sizeof(ctypes.c_long) != 8 or adjust(buffer) < 0:
        return None
    status = ctypes.c_int.from_buffer(buffer, STATUS_POSITION).value
    return not status & UNSYNCHRONISED


def _newest(data: Path) -> tuple[int, Path | None]:
    """The file of log or catalog that was written last, and when."""
    newest: tuple[int, Path | None] = (0, None)
    for path in [*(data / "log").glob("*/*/*"), *(data / "lake").glob("catalog.db*")]:
        try:
            written_ms = path.stat().st_mtime_ns // 10**6
        except FileNotFoundError:
            continue  # trimmed meanwhile
        newest = max(newest, (written_ms, path), key=lambda each: each[0])
    return newest


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _mend() -> Fix:
    if find_program("timedatectl", os.environ) is not None:
        return run_as_root("timedatectl set-ntp true")
    return do("set the clock, and have it follow a time server")
