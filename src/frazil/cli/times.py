"""Times on the command line: `15m` is 15 minutes ago, `2026-11-16T10:00` is UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from frazil.errors import Malformed
from frazil.model import Clock

AGO = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(text: str, clock: Clock) -> datetime:
    """Parse a time on the command line."""
    now = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    if match := AGO.fullmatch(text):
        try:
            return now - timedelta(seconds=float(match[1]) * SECONDS[match[2]])
        except OverflowError:
            raise Malformed(f"{text} ago is before the first representable time") from None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise Malformed(
            f"{text!r} is not a time; write 15m, 2h or 3d for a time ago, or a date and time as "
            "2026-11-16T10:00:00Z"
        ) from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
