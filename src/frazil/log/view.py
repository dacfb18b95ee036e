"""What readers see of a partition: immutable, replaced whole after every group commit.

Tuples, because they are made anew between a sync and its answers.
"""

from __future__ import annotations

from typing import NamedTuple

from frazil.log.index import SegmentFacts, SparseIndex
from frazil.log.segment import SegmentHeader


class SegmentView(NamedTuple):
    """The readable part of one segment. The facts of the open one grow with every commit."""

    path: str
    header: SegmentHeader
    facts: SegmentFacts
    sparse: SparseIndex


class View(NamedTuple):
    """A partition at one moment. Everything in it is durable.

    `segments` is never empty; the last one is open. Offsets from `start_offset` up to
    `durable_watermark` can be read.
    """

    start_offset: int
    durable_watermark: int
    segments: tuple[SegmentView, ...]

    @property
    def size_bytes(self) -> int:
        return sum(segment.facts.size_bytes for segment in self.segments)
