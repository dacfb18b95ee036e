"""Durations, sizes, counts and times for people."""

from __future__ import annotations

import datetime

NS_PER_S = 10**9
STEPS = ((1_000, "ns"), (1_000_000, "µs"), (NS_PER_S, "ms"))
"""Limit in nanoseconds up to which a unit is used."""
MINUTE, HOUR, DAY = 60, 3600, 86400


def duration_text(nanos: int) -> str:
    """`980 ns`, `12.3 ms`, `4.56 s`, `3m 05s`: three significant digits."""
    divisor = 1
    for limit, unit in STEPS:
        if nanos < limit:
            return f"{_three(nanos / divisor)} {unit}"
        divisor = limit
    seconds = nanos / NS_PER_S
    return f"{_three(seconds)} s" if seconds < MINUTE else age_text(seconds)


def _three(number: float) -> str:
    if number >= 100 or number == int(number):
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def age_text(seconds: float) -> str:
    """`5s`, `3m 05s`, `2h 10m`, `3d 4h`."""
    whole = int(seconds)
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m {whole % MINUTE:02d}s"
    if whole < DAY:
        return f"{whole // HOUR}h {whole % HOUR // MINUTE:02d}m"
    return f"{whole // DAY}d {whole % DAY // HOUR}h"


def bytes_text(count: float) -> str:
    """`512 B`, `1.2 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{_three(count)} {unit}"
        count /= 1024
    return f"{_three(count)} TiB"


def count_text(count: float) -> str:
    """`12`, `1,234`, `45.6 k`, `7.8 M`."""
    for limit, divisor, unit in ((10_000, 1, ""), (10**6, 1_000, " k"), (10**9, 10**6, " M")):
        if count < limit:
            return f"{count:,.0f}" if divisor == 1 else f"{_three(count / divisor)}{unit}"
    return f"{_three(count / 10**9)} G"


def brief_time(unix_nano: int) -> str:
    """`2026-11-16 10:58:18.248`, in UTC."""
    seconds, rest = divmod(unix_nano, NS_PER_S)
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, ValueError):
        return str(unix_nano)  # a sender may write any number
    return f"{moment:%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03d}"
