"""Parameters of Loki's API: times in nanoseconds, seconds or RFC 3339; steps; limits."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass

from frazil.errors import Malformed
from frazil.languages import LineSpan, LogSteps, duration_ns
from frazil.model import Clock
from frazil.serve.doors.endpoint import DoorRequest

NS_PER_S = 10**9
NS_PER_MS = 10**6
SECONDS_DIGITS_MAX = 10
"""Longer whole numbers are nanoseconds."""
RANGE_NS = 3600 * NS_PER_S
"""From `start` to `end`, if nothing is said."""
POINTS = 250
"""Steps of a range, if nothing is said."""
TIME_MAX_NS = 2**63 - 1

LIMIT = 100
LIMIT_MAX = 5000

_WHOLE = re.compile(r"-?\d{1,19}")
_DECIMAL = re.compile(r"-?\d{1,10}\.\d+(?:[eE][-+]?\d{1,2})?|-?\d(?:\.\d+)?[eE][-+]?\d{1,2}")
_FRACTION = re.compile(r"\.(\d+)")


def time_ns(text: str, name: str) -> int:
    """Parse a time as nanoseconds since 1970."""
    if _WHOLE.fullmatch(text):
        number = int(text)
        is_seconds = len(text.lstrip("-")) <= SECONDS_DIGITS_MAX
        return _bounded(number * NS_PER_S if is_seconds else number)
    if _DECIMAL.fullmatch(text):
        return _bounded(round(float(text) * NS_PER_S))
    return _bounded(_rfc3339(text, name))


def _bounded(nanoseconds: int) -> int:
    return max(0, min(nanoseconds, TIME_MAX_NS))


def _rfc3339(text: str, name: str) -> int:
    fraction = _FRACTION.search(text)
    whole = _FRACTION.sub("", text)
    try:
        moment = datetime.datetime.fromisoformat(whole)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise Malformed(
            f"{name} is {text!r}; write nanoseconds since 1970, seconds, or a time such as "
            "2026-11-19T10:00:00Z"
        )
    seconds = (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)).total_seconds()
    rest = int((fraction[1] + "0" * 9)[:9]) if fraction else 0
    return int(seconds) * NS_PER_S + rest


def width_ns(text: str, name: str) -> int:
    """Parse a step: seconds, or a duration with units."""
    try:
        seconds = float(text)
    except ValueError:
        nanoseconds = duration_ns(text)
    else:
        nanoseconds = round(seconds * NS_PER_S) if math.isfinite(seconds) else None
    if nanoseconds is None or not 0 < nanoseconds <= TIME_MAX_NS:
        raise Malformed(f"{name} is {text!r}; write seconds, or a duration such as 30s or 5m")
    return nanoseconds


def whole_number(call: DoorRequest, name: str, default: int, maximum: int) -> int:
    text = call.first(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= maximum:
        raise Malformed(f"{name} is {text!r}; write a number from 1 to {maximum}")
    return int(text)


def line_limit(call: DoorRequest) -> int:
    text = call.first("limit")
    if text is not None and text.isascii() and text.isdigit() and int(text) > LIMIT_MAX:
        raise Malformed(
            "max entries limit per query exceeded, limit > max_entries_limit_per_query "
            f"({int(text)} > {LIMIT_MAX})"
        )
    return whole_number(call, "limit", LIMIT, LIMIT_MAX)


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """`start` and `end` of a request."""

    start_ns: int
    end_ns: int

    @classmethod
    def of(cls, call: DoorRequest, clock: Clock) -> RequestTimes:
        """Parse `start`, `end` and `since`. The default is the last hour."""
        end, start, since = call.first("end"), call.first("start"), call.first("since")
        end_ns = clock.wall_ms() * NS_PER_MS if end is None else time_ns(end, "end")
        width = RANGE_NS if since is None else width_ns(since, "since")
        start_ns = max(0, end_ns - width) if start is None else time_ns(start, "start")
        if end_ns < start_ns:
            raise Malformed("end timestamp must not be before or equal to start time")
        return cls(start_ns, end_ns)

    @property
    def span(self) -> LineSpan:
        return LineSpan(self.start_ns, self.end_ns)

    def grid(self, call: DoorRequest) -> LogSteps:
        """The steps of a range query."""
        text = call.first("step")
        seconds = max(1, math.floor((self.end_ns - self.start_ns) / NS_PER_S / POINTS))
        step_ns = seconds * NS_PER_S if text is None else width_ns(text, "step")
        return LogSteps(self.start_ns, self.end_ns, step_ns)
