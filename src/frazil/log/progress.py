"""Progress: how far a subscriber has come in one partition, with gaps.

`watermark` is the first offset it has not finished; `done` holds what it finished above that,
out of order. State without I/O; `subscribers.py` saves it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec

from frazil.model import OffsetRange


class Progress(msgspec.Struct, kw_only=True):
    """Owned by the subscriber's thread. Stored as it stands."""

    watermark: int
    done: list[OffsetRange] = []
    tries: dict[int, int] = {}
    """How often a batch has failed, by its last offset; only of batches not finished."""
    dropped_count: int = 0

    @property
    def reach(self) -> int:
        """Everything finished lies below: the log must once have held that much."""
        return max([self.watermark, *(span.end for span in self.done)])

    def finish(self, begin: int, end: int) -> None:
        """Offsets `begin` up to `end` are finished, whatever the outcome. Idempotent."""
        begin = max(begin, self.watermark)
        if begin >= end:
            return
        first = bisect_left(self.done, begin, key=lambda span: span.end)
        last = bisect_right(self.done, end, key=lambda span: span.begin)
        merged = self.done[first:last]
        if merged:
            begin, end = min(begin, merged[0].begin), max(end, merged[-1].end)
        self.done[first:last] = [OffsetRange(begin, end)]
        if self.done[0].begin <= self.watermark:
            self.watermark = self.done.pop(0).end
        self.tries = {o: n for o, n in self.tries.items() if not self.is_finished(o)}

    def reopen(self, begin: int, end: int) -> None:
        """Offsets `begin` up to `end` are not finished any more: their effect was lost."""
        if begin >= end:
            return
        finished = [OffsetRange(0, self.watermark), *self.done]
        cut = [
            (OffsetRange(s.begin, min(s.end, begin)), OffsetRange(max(s.begin, end), s.end))
            for s in finished
        ]
        self.watermark = min(self.watermark, begin)
        self.done = [s for pair in cut for s in pair if self.watermark <= s.begin < s.end]

    def is_finished(self, offset: int) -> bool:
        at = bisect_right(self.done, offset, key=lambda span: span.begin) - 1
        return offset < self.watermark or (at >= 0 and offset < self.done[at].end)

    def drop_below(self, offset: int) -> int:
        """The log now begins at `offset`: what lay below and was not finished is lost.

        Returns how many offsets that are; they count as finished, so that nobody waits for them.
        """
        if offset <= self.watermark:
            return 0
        finished = sum(
            min(span.end, offset) - span.begin for span in self.done if span.begin < offset
        )
        lost = offset - self.watermark - finished
        self.finish(self.watermark, offset)
        self.dropped_count += lost
        return lost
