"""Appender: what a log holds becomes snapshots of tables, each offset once.

1. next     where does each table go on? The table itself says so, and nobody else
2. plan     the offsets from there up to what is durable, cut into slices for tasks
3. run      one job for all tables: each task reads its slice, decodes, sorts, writes, syncs
4. dead     dead letters come into their table first: a row that is missing has its reason by then
5. commit   files and offsets of a table in one step
6. publish  the table is read back, and the log told that it may let go

Whatever fails between two steps, the next round begins with 1 and repeats what did not count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from frazil import tracing
from frazil.errors import Conflict
from frazil.lake.append.commit import (
    Place,
    TableChange,
    check_owner,
    check_topics,
    commit,
    next_offsets,
    take_over,
)
from frazil.lake.append.log_source import RecordSource
from frazil.lake.append.progress import LakeActivity
from frazil.lake.append.slice import Slice, SourcePartition
from frazil.lake.append.task import DEAD_LETTERS, TaskTarget, WrittenSlice
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.config import LakeConfig
from frazil.metrics import Counter
from frazil.model import Clock, Rand, Signal

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from frazil.lake.files.writer import WrittenFile

logger = logging.getLogger(__name__)

ROUND_BYTES_MAX = 1024 * 1024 * 1024
"""Of the log, in one round of one partition."""

ROWS = Counter("frazil.lake.rows", "Rows committed, by table.")
SKIPPED = Counter("frazil.lake.skipped.offsets", "Offsets gone from the log before they were read.")

Work = tuple[Slice, TaskTarget]
Run = Callable[[Sequence[Work]], list[WrittenSlice]]
"""Does tasks, on Spark or in this process, and gives what each wrote, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """Offsets of one partition."""

    topic: str
    partition: int
    begin: int
    end: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """One commit: these offsets are in the table now, as so many rows."""

    table: str
    covered: tuple[Covered, ...]
    row_count: int
    dead_count: int
    snapshot_id: int

    def to_dict(self) -> dict[str, Any]:
        """For people and programs that ask what was done."""
        return asdict(self)


class Appender:
    """Belongs to one thread. Of several on the same tables only the last one opened commits."""

    def __init__(
        self,
        feed: RecordSource,
        catalog: Catalog,
        config: LakeConfig,
        run: Run,
        clock: Clock,
        rand: Rand,
    ) -> None:
        self._feed = feed
        self._catalog = catalog
        self._config = config
        self._run = run
        self._clock = clock
        self._rand = rand
        self._name = self._unique()
        self.doing: LakeActivity | None = None
        """What the round in hand does; None between two of them."""
        self._round = 0
        self._held: dict[Place, int] = {}
        self._taken: set[str] = set()

    @classmethod
    def open(
        cls,
        feed: RecordSource,
        catalog: Catalog,
        config: LakeConfig,
        *,
        run: Run,
        clock: Clock,
        rand: Rand,
    ) -> Appender:
        """Make the tables that are missing, take all of them over, and tell the log what they
        hold."""
        appender = cls(feed, catalog, config, run, clock, rand)
        sources = feed.sources()
        appender._take((*(signal.table for signal in Signal), DEAD_LETTERS))
        appender._take(source.table for source in sources)
        appender._publish(sources)
        return appender

    @property
    def pending_bytes(self) -> int:
        """About how much waits for the next round."""
        return sum(
            self._feed.pending_bytes(source, self._held.get(source.place, 0))
            for source in self._feed.sources()
        )

    def append_all(self) -> Iterator[list[Appended]]:
        """Commit all that is durable now, in as many rounds as it takes; gives what each of them
        did. What comes meanwhile may be left for later, so this has an end."""
        wanted = {source.place: self._feed.end(source) for source in self._feed.sources()}
        while any(self._held.get(place, 0) < end for place, end in wanted.items()):
            with tracing.span("lake.round") as span:
                done = self.append()
                _note(span, done)
            if not done:
                return
            yield done

    def append(self) -> list[Appended]:
        """Commit what is durable and not in the tables yet; one commit for each table.

        Returns what was committed; nothing when there was nothing new. More may be left: a round
        has a limit.
        """
        try:
            return self._append(
                LakeActivity(work="round", step="plans", begun_ms=self._clock.wall_ms())
            )
        finally:
            self.doing = None

    def _append(self, doing: LakeActivity) -> list[Appended]:
        self.doing = doing
        sources = self._feed.sources()
        self._take(source.table for source in sources)
        identities = self._feed.identities()
        tables = {name: self._load(name) for name in {source.table for source in sources}}
        dead = self._load(DEAD_LETTERS)
        for table in (*tables.values(), dead):
            check_owner(table, self._name)  # before work is done that nobody will want
        for source in sources:
            check_topics(tables[source.table], _only(identities, [source.topic]))
        work = [
            (each, self._target(tables[source.table], dead))
            for source in sources
            for each in self._plan(source, tables[source.table], dead)
        ]
        if not work:
            return []
        slices = [slice for slice, _ in work]
        sizes = _bytes_by_table(slices)
        doing = replace(
            doing, step="writes files", task_count=len(work), log_bytes=sum(sizes.values())
        )
        self.doing = doing
        written = self._run(work)
        _check_whole(slices, written)
        self._check_same(identities)
        done = []
        for name, table in sorted(tables.items()):
            new = [each for each in written if each.source.table == name]
            if not new:
                continue
            self.doing = replace(doing, step="commits", table=name)
            done.append(self._commit(table, dead, new, identities))
            doing = replace(
                doing,
                done_bytes=doing.done_bytes + sizes[name],
                done_rows=doing.done_rows + done[-1].row_count,
            )
        return done

    def _take(self, names: Iterable[str]) -> None:
        """Make tables that are missing, and take over those that are not ours yet."""
        from frazil.lake.tables.tables import ensure_table

        for name in names:
            if name not in self._taken:
                ensure_table(self._catalog, self._config, name)
                take_over(self._catalog, self._full_name(name), self._name, clock=self._clock)
                self._taken.add(name)

    def _plan(self, source: SourcePartition, table: Table, dead: Table) -> list[Slice]:
        begin = next_offsets(table).get(source.place, 0)
        # A round may have failed between both commits. Its dead letters are there already, and
        # exactly its offsets are done again, without them.
        dead_end = next_offsets(dead).get(source.place, 0)
        end = dead_end if dead_end > begin else None
        slices = self._feed.plan(source, begin, end, self._config.slice_bytes)
        total = 0
        for count, each in enumerate(slices):
            total += each.size_bytes
            if count and total > ROUND_BYTES_MAX and end is None:
                return slices[:count]
        return slices

    def _target(self, table: Table, dead: Table) -> TaskTarget:
        self._round += 1
        return TaskTarget(
            rows_location=table.location(),
            dead_location=dead.location(),
            name=f"{self._name[:12]}-{self._round:08}",
            io=table.io,
        )

    def _check_same(self, identities: Mapping[str, str]) -> None:
        """What the tasks have read is what was planned, also if a topic was made anew meanwhile."""
        if not identities:
            return
        self._feed.sources()
        now = self._feed.identities()
        if any(now.get(topic) != identity for topic, identity in identities.items()):
            raise Conflict(
                f"of the topics {dict(identities)}, now {now}, some are others; plan anew"
            )

    def _commit(
        self,
        table: Table,
        dead: Table,
        written: Sequence[WrittenSlice],
        identities: Mapping[str, str],
    ) -> Appended:
        """Commit what tasks wrote for one table."""
        covered = _covered(written)
        known = next_offsets(table)
        begins = {place: known.get(place, 0) for place in (part.place for part in covered)}
        _count_skipped(covered, begins)
        dead_count = self._commit_dead(dead, written, covered)
        files = [file for each in written for file in each.files]
        name = written[0].source.table
        snapshot_id = commit(
            self._catalog,
            self._full_name(name),
            TableChange(
                files=[data_file_of(file, table) for file in files],
                begins=begins,
                ends={part.place: part.end for part in covered},
                appender=self._name,
                commit_id=self._unique(),
                identities=_only(identities, [part.topic for part in covered]),
            ),
            clock=self._clock,
        )
        row_count = sum(file.row_count for file in files)
        ROWS.add(row_count, table=name)
        self._publish({each.source: None for each in written})
        return Appended(
            table=name,
            covered=covered,
            row_count=row_count,
            dead_count=dead_count,
            snapshot_id=snapshot_id,
        )

    def _commit_dead(
        self, dead: Table, written: Sequence[WrittenSlice], covered: Sequence[Covered]
    ) -> int:
        """Commit dead letters, unless an earlier round has. Most rounds have none, so their table
        goes on at or before where these begin."""
        known = next_offsets(dead)
        new = {part.place: part for part in covered if known.get(part.place, 0) <= part.begin}
        files = {
            each.source.place: [
                file
                for other in written
                if other.source.place == each.source.place
                for file in other.dead_files
            ]
            for each in written
            if each.source.place in new
        }
        files = {place: found for place, found in files.items() if found}
        if not files:
            return 0
        change = TableChange(
            files=[data_file_of(file, dead) for found in files.values() for file in found],
            begins={place: known.get(place, 0) for place in files},
            ends={place: new[place].end for place in files},
            appender=self._name,
            commit_id=self._unique(),
        )
        commit(self._catalog, self._full_name(DEAD_LETTERS), change, clock=self._clock)
        return sum(file.row_count for found in files.values() for file in found)

    def _publish(self, sources: Iterable[SourcePartition]) -> None:
        """Tell the log what tables hold, as the catalog has them."""
        offsets: dict[str, dict[Place, int]] = {}
        for source in sources:
            if source.table not in offsets:
                offsets[source.table] = next_offsets(self._load(source.table))
            held = offsets[source.table].get(source.place, 0)
            self._feed.publish(source, held)
            self._held[source.place] = held

    def _load(self, name: str) -> Table:
        with catalog_calls(self._config):
            return self._catalog.load_table(self._full_name(name))

    def _unique(self) -> str:
        """A name that nobody else has."""
        return f"{self._rand.getrandbits(128):032x}"

    def _full_name(self, name: str) -> str:
        return f"{self._config.namespace}.{name}"


def _bytes_by_table(slices: Iterable[Slice]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for each in slices:
        sizes[each.source.table] = sizes.get(each.source.table, 0) + each.size_bytes
    return sizes


def _note(span: tracing.Span, done: list[Appended]) -> None:
    """A round that froze only spans of our own is none to speak of: it would bring the next."""
    own = tracing.take_own()
    offsets = sum(part.end - part.begin for each in done for part in each.covered)
    span.note(commits=len(done), offsets=offsets, rows=sum(each.row_count for each in done))
    if offsets <= own:
        span.drop()


def _only(identities: Mapping[str, str], topics: Iterable[str]) -> dict[str, str]:
    """Those of some topics, where they are known."""
    return {topic: identities[topic] for topic in topics if topic in identities}


def _check_whole(slices: Sequence[Slice], written: Sequence[WrittenSlice]) -> None:
    """What the tasks wrote is what was planned, all of it."""
    planned = [(each.source, each.begin, each.end) for each in slices]
    found = [(each.source, each.begin, each.end) for each in written]
    if planned != found:
        raise Conflict(f"tasks wrote {found}, and were to write {planned}")


def _covered(written: Sequence[WrittenSlice]) -> tuple[Covered, ...]:
    """The offsets of each partition, which lie side by side."""
    ends: dict[Place, tuple[int, int]] = {}
    for each in written:
        begin, _ = ends.get(each.source.place, (each.begin, each.end))
        ends[each.source.place] = (begin, each.end)
    return tuple(
        Covered(topic=topic, partition=partition, begin=begin, end=end)
        for (topic, partition), (begin, end) in ends.items()
    )


def _count_skipped(covered: Sequence[Covered], begins: Mapping[Place, int]) -> None:
    """A topic that does not await the lake may have let go of records before they were here."""
    for part in covered:
        count = part.begin - begins[part.place]
        if count:
            SKIPPED.add(count, topic=part.topic)
            logger.warning(
                "the log was trimmed before the lake had it",
                extra={"topic": part.topic, "partition": part.partition, "count": count},
            )


def data_file_of(file: WrittenFile, table: Table) -> DataFile:
    """A written file as Iceberg's metadata has it."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(file.day),
        record_count=file.row_count,
        file_size_in_bytes=file.size_bytes,
        column_sizes=dict(file.metrics.column_sizes),
        value_counts=dict(file.metrics.value_counts),
        null_value_counts=dict(file.metrics.null_value_counts),
        nan_value_counts=dict(file.metrics.nan_value_counts),
        lower_bounds=dict(file.metrics.lower_bounds),
        upper_bounds=dict(file.metrics.upper_bounds),
        split_offsets=list(file.metrics.split_offsets),
        sort_order_id=table.sort_order().order_id,
        equality_ids=None,
        key_metadata=None,
    )
    made.spec_id = table.metadata.default_spec_id
    return made
