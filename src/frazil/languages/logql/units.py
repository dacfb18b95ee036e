"""Durations and sizes as LogQL writes them: `1h30m`, `250ms`, `20MB`, `4KiB`."""

from __future__ import annotations

import re

NS_PER_S = 10**9
_DURATION_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NS_PER_S,
    "m": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
    "d": 86_400 * NS_PER_S,
    "w": 7 * 86_400 * NS_PER_S,
    "y": 365 * 86_400 * NS_PER_S,
}
_GO_UNITS = frozenset({"ns", "us", "µs", "μs", "ms", "s", "m", "h"})
"""Units of values in lines; queries also have days, weeks and years."""
_PART = re.compile(r"(\d++\.?+\d*+|\.\d++)(ns|us|µs|μs|ms|s|m|h|d|w|y)")
_SIZE = re.compile(r"([-+]?\d[\d,]*+\.?+\d*+)\s*+([a-zA-Z]*)")
_SIZES = {"": 1, "b": 1} | {
    name: factor
    for power, letter in enumerate("kmgtpe", start=1)
    for name, factor in (
        (letter, 1000**power),
        (f"{letter}b", 1000**power),
        (f"{letter}i", 1024**power),
        (f"{letter}ib", 1024**power),
    )
}


def duration_ns(text: str) -> int | None:
    """Parse a duration of a query; None if it is none."""
    return _nanoseconds(text, frozenset(_DURATION_NS))


def value_duration_s(text: str) -> float | None:
    """Parse a duration in a line as seconds, as Go writes it, with a sign; None if it is none."""
    sign = -1 if text.startswith("-") else 1
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    if unsigned == "0":
        return 0.0
    nanoseconds = _nanoseconds(unsigned, _GO_UNITS)
    return None if nanoseconds is None else sign * nanoseconds / NS_PER_S


def _nanoseconds(text: str, units: frozenset[str]) -> int | None:
    at, total = 0, 0.0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in units:
            return None
        total += float(part[1]) * _DURATION_NS[part[2]]
        at = part.end()
    return round(total) if text else None


def size_bytes(text: str) -> float | None:
    """Parse a size; None if it is none."""
    match = _SIZE.fullmatch(text)
    factor = None if match is None else _SIZES.get(match[2].lower())
    if match is None or factor is None:
        return None
    return float(match[1].replace(",", "")) * float(factor)


def duration_text(nanoseconds: int) -> str:
    """Write a duration in the units of a query: `5m`, `1h30m`."""
    if nanoseconds == 0:
        return "0s"
    parts, rest = [], abs(nanoseconds)
    for unit in ("h", "m", "s", "ms", "us", "ns"):
        count, rest = divmod(rest, _DURATION_NS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if nanoseconds < 0 else "") + "".join(parts)
