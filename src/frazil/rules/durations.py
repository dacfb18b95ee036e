"""Durations as Prometheus writes them: `1h30m`, `500ms`, `0`."""

from __future__ import annotations

import re

from frazil.errors import Malformed

UNITS_MS = {
    "y": 365 * 24 * 3600 * 1000,
    "w": 7 * 24 * 3600 * 1000,
    "d": 24 * 3600 * 1000,
    "h": 3600 * 1000,
    "m": 60 * 1000,
    "s": 1000,
    "ms": 1,
}
DURATION = re.compile("".join(rf"(?:(?P<{unit}>[0-9]+){unit})?" for unit in UNITS_MS))
DURATION_MS_MAX = 2**63 // 1_000_000
"""Prometheus counts nanoseconds in 64 bits."""


def parse_duration(text: str) -> int:
    """Return milliseconds. `Malformed` if it is not a duration."""
    match = DURATION.fullmatch(text)
    if text == "0":
        return 0
    if match is None or not text:
        raise Malformed(f"{text!r} is not a duration; write it like 30s, 5m or 1h30m")
    total = sum(int(match[unit] or 0) * size for unit, size in UNITS_MS.items())
    if total > DURATION_MS_MAX:
        raise Malformed(f"{text!r} is too long; a duration has at most 292 years")
    return total


def duration_text(duration_ms: int) -> str:
    """Return the shortest text of a duration."""
    parts = []
    for unit, size in UNITS_MS.items():
        # Prometheus avoids units that people add up differently, unless they fit exactly.
        if unit in ("y", "w", "d") and duration_ms % size:
            continue
        count, duration_ms = divmod(duration_ms, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
