"""Times on the command line: `15m` is a while ago, `2026-11-16T10:00` is UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from frazil.errors import Malformed
from frazil.model import Clock

AGO = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(text: str, clock: Clock) -> datetime:
    """What a time on the command line means. `Malformed` when it means nothing."""
    now = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    if found := AGO.fullmatch(text):
        try:
            return now - timedelta(seconds=float(found[1]) * SECONDS[found[2]])
        except OverflowError:
            raise Malformed(f"{text} ago is before all times") from None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise Malformed(
            f"{text!r} is no time; write 15m, 2h or 3d for a while ago, or a date and time as "
            "2026-11-16T10:00:00Z"
        ) from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
