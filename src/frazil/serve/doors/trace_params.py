"""Parameters of Tempo and Jaeger: times, durations, numbers, trace ids."""

from __future__ import annotations

import datetime
import re

from frazil.errors import Malformed
from frazil.model import Clock
from frazil.query import TimeRange
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.http.request import EARLIEST, LATEST, wall_time

RANGE_DEFAULT = datetime.timedelta(hours=1)
"""Time range of metrics without a start."""
NANO_DIGITS = 16
"""Times of Tempo with at least so many digits are in nanoseconds."""
ID_CHARS = 32

_ID = re.compile(f"[0-9a-fA-F]{{1,{ID_CHARS}}}", re.ASCII)

_NUMBER = re.compile(r"\d{1,19}(?:\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(?:\d{1,12}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h|d))+", re.ASCII)
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)", re.ASCII)
_UNIT_S = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}


def time_range(call: DoorRequest) -> TimeRange:
    """Return the time range of `start` and `end`, without bounds if they are missing."""
    return TimeRange(since=_time(call, "start"), until=_time(call, "end"))


def bounded_range(call: DoorRequest, clock: Clock) -> tuple[datetime.datetime, datetime.datetime]:
    """Return the time range of `start` and `end`, or `since`; the last hour by default."""
    until = _time(call, "end") or wall_time(clock)
    age = duration(call, "since")
    since = _time(call, "start") or until - (RANGE_DEFAULT if age is None else age)
    if since >= until:
        raise Malformed("end is not after start; write both in seconds since 1970")
    return since, until


def _time(call: DoorRequest, name: str) -> datetime.datetime | None:
    text = call.first(name)
    if text is None or text == "0":
        return None
    try:
        if _NUMBER.fullmatch(text):
            whole = text.partition(".")[0]
            seconds = float(text) / (1e9 if len(whole) >= NANO_DIGITS else 1)
            return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        raise Malformed(f"{name} is {text[:100]!r}; write seconds since 1970") from None
    return timestamp(text, name, "seconds since 1970")


def timestamp(text: str, name: str, wanted: str) -> datetime.datetime:
    """Parse a time with a zone. `Malformed` says what is wanted."""
    try:
        time = datetime.datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return min(max(EARLIEST, time), LATEST)
    except ValueError:
        pass
    raise Malformed(f"{name} is {text[:100]!r}; write {wanted}")


def duration(call: DoorRequest, name: str) -> datetime.timedelta | None:
    """Return a duration such as 100ms, 1m30s, or seconds; None if it is missing."""
    text = call.first(name)
    if text is None:
        return None
    if _NUMBER.fullmatch(text):
        seconds = float(text)
    elif _DURATION.fullmatch(text):
        seconds = sum(float(part[1]) * _UNIT_S[part[2]] for part in _PIECE.finditer(text))
    else:
        raise Malformed(f"{name} is {text[:100]!r}; write a duration, such as 100ms or 1m30s")
    try:
        return datetime.timedelta(seconds=seconds)
    except OverflowError:
        raise Malformed(f"{name} is {text[:100]!r}; that is too long") from None


def number(call: DoorRequest, name: str, default: int) -> int:
    """Return a whole number; the default if it is missing or 0, as Tempo does."""
    text = call.first(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise Malformed(f"{name} is {text[:100]!r}; write a whole number")
    return int(text) or default


def trace_id_of(text: str) -> str:
    """Return a trace id with all of its digits. Leading zeros may be missing."""
    if not _ID.fullmatch(text):
        raise Malformed(f"{text[:100]!r} is not a trace id, which has up to {ID_CHARS} hex digits")
    return text.lower().rjust(ID_CHARS, "0")
