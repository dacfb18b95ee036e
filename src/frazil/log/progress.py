"""Progress: how far a subscriber has come in one partition, with gaps.

`watermark` is the first unfinished offset; `done` has the ranges finished above it, out of order.
No I/O: `subscribers.py` saves it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec

from frazil.model import OffsetRange


class Progress(msgspec.Struct, kw_only=True):
    """Owned by the subscriber's thread. Stored as is."""

    watermark: int
    done: list[OffsetRange] = []
    tries: dict[int, int] = {}
    """Failed attempts of unfinished batches, by last offset."""
    dropped_count: int = 0

    @property
    def end_offset(self) -> int:
        """Offset above everything finished; the log must have held that much."""
        return max([self.watermark, *(done.end for done in self.done)])

    def finish(self, begin: int, end: int) -> None:
        """Mark offsets `begin` up to `end` as finished. Idempotent."""
        begin = max(begin, self.watermark)
        if begin >= end:
            return
        first = bisect_left(self.done, begin, key=lambda done: done.end)
        last = bisect_right(self.done, end, key=lambda done: done.begin)
        merged = self.done[first:last]
        if merged:
            begin, end = min(begin, merged[0].begin), max(end, merged[-1].end)
        self.done[first:last] = [OffsetRange(begin, end)]
        if self.done[0].begin <= self.watermark:
            self.watermark = self.done.pop(0).end
        self.tries = {o: n for o, n in self.tries.items() if not self.is_finished(o)}

    def reopen(self, begin: int, end: int) -> None:
        """Mark offsets `begin` up to `end` as unfinished: their effect was lost."""
        if begin >= end:
            return
        finished = [OffsetRange(0, self.watermark), *self.done]
        cut = [
            (OffsetRange(r.begin, min(r.end, begin)), OffsetRange(max(r.begin, end), r.end))
            for r in finished
        ]
        self.watermark = min(self.watermark, begin)
        self.done = [r for pair in cut for r in pair if self.watermark <= r.begin < r.end]

    def is_finished(self, offset: int) -> bool:
        at = bisect_right(self.done, offset, key=lambda done: done.begin) - 1
        return offset < self.watermark or (at >= 0 and offset < self.done[at].end)

    def drop_below(self, offset: int) -> int:
        """Mark everything below `offset`, the new log start, as finished.

        Returns how many of those offsets were unfinished and are lost.
        """
        if offset <= self.watermark:
            return 0
        finished = sum(
            min(done.end, offset) - done.begin for done in self.done if done.begin < offset
        )
        lost = offset - self.watermark - finished
        self.finish(self.watermark, offset)
        self.dropped_count += lost
        return lost
