"""TopicTables: topics that are no telemetry, as tables for queries.

The hot tier does not have them. Their rows are

    lake(S) + the rows of the log at or above W(S)

with S and W as in view.py, so that each is there once, at every instant. But the log does not wait
for views: it lets go of records as soon as a commit of theirs was read back. Therefore

1. starts  where does the log begin? What is below is in a commit by now
2. view    the one at hand; when it ends below a start, the table is looked up: that commit is in it
3. tail    the rows of the log behind the view. When the log lets go of some meanwhile, from 1

A topic that does not await the lake may let go of records that no commit has. Those are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from frazil.errors import OutOfRange, Unavailable
from frazil.lake.append.log_source import source_of
from frazil.lake.append.slice import RECORDS
from frazil.lake.read.topic_tails import TopicTails
from frazil.lake.read.window_reader import WindowRows
from frazil.lake.scan.data_file import TableView
from frazil.lake.scan.view import LakeView
from frazil.lake.tables.properties import TOPIC_PREFIX
from frazil.log import Log, Topic

TRIES = 5
"""Each fails because the log has let go of something within the last moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRows:
    """All rows of a table at one moment."""

    topic: str
    view: TableView | None
    """Those of the lake; None when there is no lake."""
    tail: tuple[WindowRows, ...] = ()
    """Those behind them."""


class TopicTables:
    """Any thread may ask."""

    def __init__(
        self, log: Log, patterns: Sequence[str], view: LakeView | None, *, bytes_max: int
    ) -> None:
        """`patterns` of the topics that are tables. Of a table up to `bytes_max` bytes of rows may
        be in the log only."""
        self._log = log
        self._patterns = patterns
        self._view = view
        self._tails = TopicTails(log, bytes_max)
        self._found: frozenset[str] = frozenset()

    def known(self, names: Collection[str]) -> list[str]:
        """Those of these names that are tables, as far as nobody has to be asked."""
        if not any(name.startswith(TOPIC_PREFIX) for name in names):
            return []
        tables = self._topics().keys() | self._found
        return sorted(tables.intersection(names))

    def names(self) -> list[str]:
        """All tables: of topics that the log has, and those that only the lake has. While the
        catalog does not answer, those that it had before."""
        if self._view is not None:
            with suppress(Unavailable):  # whoever reads one of them is told
                self._found = frozenset(self._view.topic_tables())
        return sorted(self._topics().keys() | self._found)

    def cold_rows(self, table: str) -> TopicRows:
        """Those rows of a table that the lake holds."""
        return TopicRows(topic="", view=self._pinned(table))

    def rows(self, table: str, check: Callable[[], None] = lambda: None) -> TopicRows:
        """The rows of one of them. Calls `check` now and then, which may raise. `TooLarge` when too
        many are in the log only; `Unavailable` when some cannot be had."""
        topic = self._topics().get(table)
        if topic is None:
            return self.cold_rows(table)
        for _ in range(TRIES):
            try:
                return self._rows(table, topic, check)
            except OutOfRange as error:
                reason = error
        raise Unavailable(f"the log lets go of {topic.name} faster than it is read: {reason}")

    def _rows(self, table: str, topic: Topic, check: Callable[[], None]) -> TopicRows:
        starts = {each.index: each.view.start_offset for each in topic.partitions}
        view = self._pinned(table)
        is_behind = any(_held(view, topic.name, p) < start for p, start in starts.items())
        if is_behind and self._view is not None:
            view = self._view.refresh([table]).tables[table]
        if view is None and topic.config.awaits_lake and any(starts.values()):
            raise Unavailable(
                f"the log has let go of the first records of {topic.name}, and there is no lake "
                "here in which they are: set lake.enabled, and install frazil[lake]"
            )
        begins = {p: max(start, _held(view, topic.name, p)) for p, start in starts.items()}
        tail = self._tails.read(topic, begins, check)
        return TopicRows(topic=topic.name, view=view, tail=tail)

    def _pinned(self, table: str) -> TableView | None:
        return None if self._view is None else self._view.pin([table]).tables[table]

    def _topics(self) -> dict[str, Topic]:
        """By table."""
        found = {}
        for topic in self._log.topics():
            source = source_of(topic.name, 0, self._patterns)
            if source is not None and source.signal == RECORDS:
                found[source.table] = topic
        return found


def _held(view: TableView | None, topic: str, partition: int) -> int:
    return 0 if view is None else view.offsets.get((topic, partition), 0)
