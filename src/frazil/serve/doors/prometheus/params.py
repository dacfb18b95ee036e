"""Parameters of Prometheus' API: times, durations, limits, selectors."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence

from frazil.errors import Malformed
from frazil.languages import LabelMatcher, selector_matchers
from frazil.serve.doors.endpoint import DoorRequest

MS_PER_S = 1000
TIME_MS_MAX = 253_402_300_799_999
"""The end of the year 9999."""
LISTED_MS = 24 * 3_600_000
"""How far listings go back without `start`."""
STEPS_MAX = 11_000
"""As in Prometheus."""
LOOKBACK_MS = 300_000
_UNITS_MS = {
    "y": 365 * 86_400_000,
    "w": 7 * 86_400_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
_DURATION = re.compile(
    r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?",
    re.ASCII,
)


def time_ms(text: str, name: str) -> int:
    """Return a time in Unix seconds or RFC 3339 as milliseconds."""
    try:
        seconds = float(text)
    except ValueError:
        return _rfc3339_ms(text, name)
    if not math.isfinite(seconds) or abs(seconds) * MS_PER_S > TIME_MS_MAX:
        raise _bad(name, f"{text} is no time; use Unix seconds or RFC 3339")
    return round(seconds * MS_PER_S)


def _rfc3339_ms(text: str, name: str) -> int:
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise _bad(name, f"cannot parse {text!r} to a time; use Unix seconds or RFC 3339")
    return round(time.timestamp() * MS_PER_S)


def duration_ms(text: str, name: str) -> int:
    """Return a duration in seconds, or such as 1h30m, as milliseconds."""
    try:
        seconds = float(text)
    except ValueError:
        found = _DURATION.fullmatch(text) if text else None
        if found is None:
            raise _bad(
                name, f"cannot parse {text!r} to a valid duration; use seconds, or such as 5m"
            ) from None
        pairs = zip(found.groups(), _UNITS_MS.values(), strict=True)
        return sum(int(number) * unit for number, unit in pairs if number)
    if not math.isfinite(seconds) or abs(seconds) * MS_PER_S > TIME_MS_MAX:
        raise _bad(name, f"{text} is no duration")
    return round(seconds * MS_PER_S)


def limit_of(request: DoorRequest) -> int:
    """Return `limit`; 0 means none."""
    text = request.first("limit") or "0"
    if not text.isascii() or not text.isdigit():
        raise _bad("limit", "limit must be a non-negative number")
    return int(text)


def range_ms(request: DoorRequest, now_ms: int) -> tuple[int, int]:
    """Return the range of a listing as (after, until]."""
    start, end = request.first("start"), request.first("end")
    until = now_ms if end is None else time_ms(end, "end")
    after = until - LISTED_MS if start is None else time_ms(start, "start") - 1
    if until < after:
        raise _bad("end", "end timestamp must not be before start time")
    return after, until


def selectors_of(request: DoorRequest) -> list[Sequence[LabelMatcher]]:
    """Return the selectors of `match[]`."""
    return [selector_matchers(text) for text in request.fields.get("match[]", ()) if text]


def _bad(name: str, why: str) -> Malformed:
    return Malformed(f'invalid parameter "{name}": {why}')
