"""Server-sent events of live tails. An event id is a position: offsets by partition."""

from __future__ import annotations

import re
from collections.abc import Sequence

from frazil.errors import Malformed

EVENTS = b"text/event-stream"
RETRY_MS = 2000
"""Reconnect delay for browsers."""
PARTITIONS_MAX = 1024
"""Partitions in an id: as many as a topic may have."""

_EVENT_ID = re.compile(
    rf"(\d{{1,9}}:\d{{1,18}})(,\d{{1,9}}:\d{{1,18}}){{0,{PARTITIONS_MAX - 1}}}", re.ASCII
)


def hello(watermarks: dict[int, int]) -> bytes:
    """Return the first event: its id lets a client that loses the connection before the first row
    resume here."""
    return b"retry: %d\nid: %s\n\n" % (RETRY_MS, event_id(watermarks))


def events_of(rows: Sequence[bytes], skipped_count: int, watermarks: dict[int, int]) -> bytes:
    """Return rows, encoded as JSON, as events. Only the last has an id, so that resuming repeats
    nothing."""
    parts = []
    if skipped_count:
        parts.append(b'event: skipped\ndata: {"count":%d}\n\n' % skipped_count)
    events = [b"data: %s\n\n" % row for row in rows]
    if events:
        events[-1] = b"id: %s\n%s" % (event_id(watermarks), events[-1])
    return b"".join([*parts, *events])


def event_id(watermarks: dict[int, int]) -> bytes:
    """Return watermarks as an event id. Without any, the first row: an empty id would be
    ignored."""
    ends = sorted((watermarks or {0: 0}).items())
    return ",".join(f"{partition}:{end}" for partition, end in ends).encode()


def parse_event_id(text: str, name: str = "Last-Event-ID") -> dict[int, int]:
    """Return the watermarks of an event id."""
    if not _EVENT_ID.fullmatch(text):
        raise Malformed(f"{name} is {text[:100]!r}; send one of an earlier response, or none")
    pairs = (pair.split(":") for pair in text.split(","))
    return {int(partition): int(end) for partition, end in pairs}
