"""A source in a few lines: the numbers from 1 on. Copy it, and read from your system instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.connectors import ConnectorContext, ConnectorType, KnownPosition, Source, SourceBatch
from frazil.log import Record
from frazil.model import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersOptions:
    """CREATE SOURCE n TYPE numbers LAST=1000 INTO TOPIC 'numbers'"""

    last: int
    at_a_time: int = 10


@dataclass(slots=True)
class Numbers:
    """All methods are called by one thread."""

    options: NumbersOptions
    clock: Clock
    done: int = 0

    def open(self, known: Sequence[KnownPosition]) -> None:
        for each in known:  # none the first time
            self.done = int(each.position)

    def poll(self, timeout_s: float) -> Sequence[SourceBatch]:
        end = min(self.done + self.options.at_a_time, self.options.last)
        if end == self.done:
            self.clock.sleep(timeout_s)  # wait for news here, but not longer
            return ()
        now_ms = self.clock.wall_ms()
        records = [
            Record(offset=0, timestamp_ms=now_ms, key=None, value=b"%d" % number)
            for number in range(self.done + 1, end + 1)
        ]
        self.done = end
        return [SourceBatch(records=records, position=b"%d" % end)]

    def commit(self, stream: str, position: bytes) -> None:
        """Everything up to `position` is durable: acknowledge it to your system."""

    def close(self) -> None:
        """Release what `open` has opened."""


def _source(options: NumbersOptions, context: ConnectorContext) -> Source:
    return Numbers(options, context.clock)


NUMBERS = ConnectorType(title="Numbers", options=NumbersOptions, source=_source)
