"""TopicTables: topics that are not telemetry, as tables for queries.

The hot tier does not hold them. Their rows are

    lake(S) + the rows of the log at or above W(S)

with S and W as in view.py, so each row appears once at every instant. But the log does not wait for
views: it may delete records as soon as their commit was verified. Therefore

1. starts  get the first offset of the log; everything below is committed by now
2. view    use the current view; if it ends below a start, refresh it to include that commit
3. tail    read the rows of the log after the view; if the log deletes some meanwhile, go to 1

A topic that does not wait for the lake may delete records that were never committed. Those are
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from frazil.errors import OutOfRange, Unavailable
from frazil.lake.append.log_source import source_of
from frazil.lake.append.slice import RECORDS
from frazil.lake.read.topic_tails import TopicTails
from frazil.lake.read.window_reader import WindowRows
from frazil.lake.scan.data_file import TableView
from frazil.lake.scan.view import LakeView
from frazil.log import ReadableLog, ReadableTopic
from frazil.model import TopicPartition

TRIES = 5
"""Attempts. Each fails only if the log deletes records during the read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRows:
    """All rows of a table at one instant."""

    topic: str
    view: TableView | None
    """The rows in the lake, or None without a lake."""
    tail: tuple[WindowRows, ...] = ()
    """The rows in the log after them."""


class TopicTables:
    """Thread-safe."""

    def __init__(
        self, log: ReadableLog, patterns: Sequence[str], view: LakeView | None, *, bytes_max: int
    ) -> None:
        """`patterns` select the topics that are tables. `bytes_max` limits the rows of a table
        that are in the log only."""
        self._log = log
        self._patterns = patterns
        self._view = view
        self._tails = TopicTails(log, bytes_max)
        self._lake_tables: frozenset[str] = frozenset()

    def known(self) -> list[str]:
        """Return all known tables, without asking the catalog."""
        return sorted(self._topics().keys() | self._lake_tables)

    def names(self) -> list[str]:
        """Return all tables: of topics in the log, and those in the lake only. If the catalog does
        not answer, use its last known tables."""
        if self._view is not None:
            with suppress(Unavailable):  # reading such a table reports the error
                self._lake_tables = frozenset(self._view.topic_tables())
        return sorted(self._topics().keys() | self._lake_tables)

    def lake_rows(self, table: str) -> TopicRows:
        """Return the rows of a table that the lake holds."""
        return TopicRows(topic="", view=self._pinned(table))

    def rows(self, table: str, check: Callable[[], None] = lambda: None) -> TopicRows:
        """Return all rows of a table. Calls `check` regularly, which may raise. Raise `TooLarge` if
        too many are in the log only, and `Unavailable` if some cannot be read."""
        topic = self._topics().get(table)
        if topic is None:
            return self.lake_rows(table)
        for _ in range(TRIES):
            try:
                return self._rows(table, topic, check)
            except OutOfRange as error:
                reason = error
        raise Unavailable(f"the log deletes {topic.name} faster than it is read: {reason}")

    def _rows(self, table: str, topic: ReadableTopic, check: Callable[[], None]) -> TopicRows:
        starts = {p.index: p.view.start_offset for p in topic.partitions}
        identity = str(topic.topic_id)
        view = self._pinned(table)
        is_behind = any(_held(view, topic.name, p) < start for p, start in starts.items())
        if is_behind and self._view is not None:
            view = self._view.refresh([table]).tables[table]
        if view is not None and view.topic_ids.get(topic.name, identity) != identity:
            view = None  # rows of a deleted topic with the same name
        if view is None and topic.config.awaits_lake and any(starts.values()):
            raise Unavailable(
                f"the first records of {topic.name} are no longer in the log, and the lake is not "
                "enabled: set lake.enabled and install frazil[lake]"
            )
        begins = {p: max(start, _held(view, topic.name, p)) for p, start in starts.items()}
        tail = self._tails.read(topic, begins, check)
        return TopicRows(topic=topic.name, view=view, tail=tail)

    def _pinned(self, table: str) -> TableView | None:
        return None if self._view is None else self._view.pin([table]).tables[table]

    def _topics(self) -> dict[str, ReadableTopic]:
        """Return topics by table name."""
        topics = {}
        for topic in self._log.topics():
            source = source_of(topic.name, 0, self._patterns)
            if source is not None and source.signal == RECORDS:
                topics[source.table] = topic
        return topics


def _held(view: TableView | None, topic: str, partition: int) -> int:
    return 0 if view is None else view.offsets.get(TopicPartition(topic, partition), 0)
