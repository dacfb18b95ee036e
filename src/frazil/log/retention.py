"""Retention: what may go, and what must not. Decisions only; the partitions carry them out.

A sealed segment is *released* when it is published to the lake (where a topic awaits that) and
every subscriber's saved progress is past it. Released segments go by age, then by size, and all
of them when the log is short of room. What is not released stays, unless the operator has chosen
`drop_oldest`: then it is dropped, counted, and subscribers are told.
"""

from __future__ import annotations

from collections.abc import Iterable

from frazil.log.config import TopicConfig
from frazil.log.view import View
from frazil.metrics import Counter

EXPIRED = Counter("frazil.log.expired.bytes", "Bytes of released segments removed.")
LOST = Counter(
    "frazil.log.lost.offsets", "Offsets removed before everyone had read them, by reason."
)


def released_offset(view: View, config: TopicConfig, published: int, read: Iterable[int]) -> int:
    """Everything below is needed by nobody any more. A compacted topic needs all it has: the
    latest record of a key is nowhere else."""
    if config.cleanup == "compact":
        return view.start_offset
    limits = [view.durable_watermark, *read]
    if config.awaits_lake:
        limits.append(published)
    return min(limits)


def expired_offset(
    view: View, config: TopicConfig, released: int, now_ms: int, *, is_tight: bool
) -> int:
    """Where the log may begin from now on; its present start when nothing may go."""
    start = view.start_offset
    size_bytes = view.size_bytes
    for segment in view.segments[:-1]:
        if segment.facts.end_offset > released:
            break
        is_old = now_ms - segment.facts.sealed_ms >= config.retention_ms
        size_max = config.retention_bytes_max
        is_large = size_max is not None and size_bytes > size_max
        if not (is_old or is_large or is_tight):
            break
        start = segment.facts.end_offset
        size_bytes -= segment.facts.size_bytes
    return start


def oldest_sealed(views: Iterable[tuple[int, View]]) -> int | None:
    """Which of the numbered views holds the segment sealed longest ago."""
    sealed = [
        (view.segments[0].facts.sealed_ms, number)
        for number, view in views
        if len(view.segments) > 1
    ]
    return min(sealed)[1] if sealed else None
