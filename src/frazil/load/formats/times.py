"""Times in text, as RFC 3339 writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

NS_PER_S = 1_000_000_000
PATTERN = (
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?:([Zz])| ?([+-])(\d\d):?(\d\d))?"
)
TIME = re.compile(PATTERN, re.ASCII)


def nanoseconds_of(text: str) -> int | None:
    """Return a time in nanoseconds since 1970; None if the text is none. UTC if it has no zone."""
    found = TIME.fullmatch(text.strip())
    if found is None:
        return None
    day, clock, fraction, _, sign, hours, minutes = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
    except ValueError:
        return None
    seconds = int(moment.timestamp())
    if sign is not None:
        if int(hours) > 23 or int(minutes) > 59:
            return None
        offset = int(hours) * 3600 + int(minutes) * 60
        seconds += offset if sign == "-" else -offset
    return seconds * NS_PER_S + int((fraction or "").ljust(9, "0"))
