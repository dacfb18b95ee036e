"""Appender: commits the records of a log to tables, each offset exactly once.

A round:

1. next     read each table's next offset from the table, the only source of truth
2. plan     cut the durable offsets from there into slices, one per task
3. run      one job for all tables: each task reads its slice, decodes, sorts, writes, syncs
4. dead     commit dead letters first, so a missing row always has its reason on record
5. commit   files and next offsets of a table, atomically
6. publish  read the table back and tell the log that it may trim

After a failure at any step the next round begins at 1 and repeats whatever was not committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from frazil import tracing
from frazil.errors import Conflict, Overloaded
from frazil.lake.append.commit import (
    TableChange,
    check_owner,
    check_topics,
    commit,
    data_file_of,
    find_commit,
    next_offsets,
    take_over,
    topic_ids,
)
from frazil.lake.append.dead_letters import DEAD_LETTERS, UnfitRecords, commit_letters
from frazil.lake.append.log_source import RecordSource
from frazil.lake.append.progress import LakeActivity, ReportActivity
from frazil.lake.append.slice import Slice, SourcePartition
from frazil.lake.append.task import TaskTarget, WrittenSlice
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.files.object_store import open_store
from frazil.lake.tables.promoted import promoted_fields
from frazil.metrics import Counter
from frazil.model import (
    NO_PROMOTIONS,
    Clock,
    GiB,
    Promotions,
    Rand,
    Signal,
    TopicPartition,
)
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from frazil.lake.files.writer import WrittenFile

logger = logging.getLogger(__name__)

ROUND_BYTES_MAX = GiB
"""Bytes of one partition in one round; `lake.flush_bytes` while the disk is short of space."""

ROWS = Counter("frazil.lake.rows", "Rows committed, by table.")
SKIPPED = Counter(
    "frazil.lake.skipped.offsets", "Offsets trimmed from the log before the lake read them."
)

Work = tuple[Slice, TaskTarget]
Run = Callable[[Sequence[Work]], list[WrittenSlice]]
"""Runs tasks, on Spark or in this process, and returns their results in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """The offsets [begin, end) of one partition."""

    topic: str
    partition: int
    begin: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """One commit to one table."""

    table: str
    covered: tuple[Covered, ...]
    row_count: int
    dead_count: int
    snapshot_id: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as the API has them."""
        return asdict(self)


class Appender:
    """Owned by one thread. If several are open on the same tables, only the last one opened
    commits; the others are fenced."""

    def __init__(
        self,
        source: RecordSource,
        catalog: Catalog,
        config: LakeConfig,
        run: Run,
        clock: Clock,
        rand: Rand,
        report: ReportActivity,
        is_disk_short: Callable[[], bool] = lambda: False,
        promotions: Promotions = NO_PROMOTIONS,
    ) -> None:
        self._source = source
        self._promotions = promotions
        self._is_disk_short = is_disk_short
        self._catalog = catalog
        self._config = config
        self._run = run
        self._clock = clock
        self._rand = rand
        self._name = self._unique()
        self._report = report
        self._target_count = 0
        self._owned: set[str] = set()
        self._checked_ids: dict[str, str] = {}
        """Topic -> id; their tables have no rows of another topic."""

    @classmethod
    def open(
        cls,
        source: RecordSource,
        catalog: Catalog,
        config: LakeConfig,
        *,
        run: Run,
        clock: Clock,
        rand: Rand,
        report: ReportActivity = lambda _: None,
        is_disk_short: Callable[[], bool] = lambda: False,
        promotions: Promotions = NO_PROMOTIONS,
    ) -> Appender:
        """Create missing tables, take all of them over, and publish their lake watermarks.

        Rounds are small while `is_disk_short`: each lets the log give back what it has committed,
        before the next one needs space.
        """
        appender = cls(source, catalog, config, run, clock, rand, report, is_disk_short, promotions)
        partitions = source.sources()
        appender._take((*(signal.table for signal in Signal), DEAD_LETTERS))
        appender._take(partition.table for partition in partitions)
        appender._rename_replaced(partitions)
        appender._publish(partitions)
        return appender

    @property
    def pending_bytes(self) -> int:
        """Estimated bytes that are durable and not in the tables."""
        return sum(map(self._source.pending_bytes, self._source.sources()))

    def owns(self, table: str) -> bool:
        """Return whether this appender has taken a table over."""
        return table in self._owned

    def append_all(self) -> Iterator[list[Appended]]:
        """Commit all that is durable now and yield the commits of each round.

        Records that arrive meanwhile may be left for later, so this ends."""
        ends = {partition: self._source.end(partition) for partition in self._source.sources()}
        while any(self._source.watermark(partition) < end for partition, end in ends.items()):
            done = self.append()
            if not done:
                return
            yield done

    def append(self) -> list[Appended]:
        """Run one round: at most one commit per table, of what is durable and not in the tables.

        Returns the commits. A round is limited by `ROUND_BYTES_MAX`, so more may be left.
        """
        activity = LakeActivity(work="round", step="planning", begun_ms=self._clock.wall_ms())
        self._report(activity)
        try:
            with tracing.span("lake.round") as span:
                return self._append(activity, span)
        finally:
            self._report(None)

    def _append(self, activity: LakeActivity, span: tracing.Span) -> list[Appended]:
        partitions = self._source.sources()
        self._take(partition.table for partition in partitions)
        self._rename_replaced(partitions)
        identities = self._source.identities()
        tables = {name: self._load(name) for name in {each.table for each in partitions}}
        dead = self._load(DEAD_LETTERS)
        for table in (*tables.values(), dead):
            check_owner(table, self._name)  # before any work that a fenced appender would waste
        for partition in partitions:
            check_topics(tables[partition.table], _only(identities, [partition.topic]))
        work = [
            (slice, self._target(tables[partition.table], dead))
            for partition in partitions
            for slice in self._plan(partition, tables[partition.table], dead)
        ]
        if not work:
            span.drop()
            return []
        slices = [slice for slice, _ in work]
        sizes = _bytes_by_table(slices)
        activity = replace(
            activity, step="writing files", task_count=len(work), log_bytes=sum(sizes.values())
        )
        self._report(activity)
        written = self._run(work)
        _check_complete(slices, written)
        self._check_topics_unchanged(identities)
        done = []
        for name, table in sorted(tables.items()):
            new = [each for each in written if each.source.table == name]
            if not new:
                continue
            self._report(replace(activity, step="committing", table=name))
            done.append(self._commit(table, dead, new, identities))
            activity = replace(
                activity,
                done_bytes=activity.done_bytes + sizes[name],
                done_rows=activity.done_rows + done[-1].row_count,
            )
        _describe(span, written, done)
        return done

    def _take(self, names: Iterable[str]) -> None:
        """Create missing tables, and take over those that are not ours yet."""
        from frazil.lake.tables.tables import ensure_table

        for name in names:
            if name not in self._owned:
                promoted = self._promotions.get(name, ())
                ensure_table(self._catalog, self._config, name, promoted)
                take_over(self._catalog, self._full_name(name), self._name, clock=self._clock)
                self._owned.add(name)

    def _rename_replaced(self, partitions: Iterable[SourcePartition]) -> None:
        """Rename the table of a topic that was deleted and created again: its rows stay, and the
        new topic gets a table of its own."""
        from frazil.lake.tables.tables import kept_name

        if not self._source.replaces_topics:
            return
        identities = self._source.identities()
        for topic, table in {each.topic: each.table for each in partitions}.items():
            identity = identities.get(topic)
            if identity is None or self._checked_ids.get(topic) == identity:
                continue
            known = topic_ids(self._load(table)).get(topic, identity)
            if known == identity:
                self._checked_ids[topic] = identity
                continue
            kept = kept_name(table, known)
            with catalog_calls(self._config):
                self._catalog.rename_table(self._full_name(table), self._full_name(kept))
            logger.warning(
                "a topic was deleted and created again: its table was renamed",
                extra={"topic": topic, "table": table, "renamed_to": kept},
            )
            self._owned.discard(table)
            self._take([table])

    def _plan(self, source: SourcePartition, table: Table, dead: Table) -> list[Slice]:
        begin = next_offsets(table).get(source.topic_partition, 0)
        # An earlier round may have failed after committing its dead letters. Exactly its offsets
        # are repeated, without the dead letters.
        dead_end = next_offsets(dead).get(source.topic_partition, 0)
        end = dead_end if dead_end > begin else None
        bytes_max = self._config.flush_bytes if self._is_disk_short() else ROUND_BYTES_MAX
        slice_bytes = min(self._config.slice_bytes, bytes_max)
        slices = self._source.plan(source, begin, end, slice_bytes)
        total = 0
        for count, slice in enumerate(slices):
            total += slice.size_bytes
            if count and total > bytes_max and end is None:
                return slices[:count]
        return slices

    def _target(self, table: Table, dead: Table) -> TaskTarget:
        self._target_count += 1
        return TaskTarget(
            rows_location=table.location(),
            dead_location=dead.location(),
            name=f"{self._name[:12]}-{self._target_count:08}",
            promoted=promoted_fields(table),
            io=table.io,
        )

    def _check_topics_unchanged(self, identities: Mapping[str, str]) -> None:
        """Raise `Conflict` if a topic was deleted and created again while tasks read it."""
        if not identities:
            return
        self._source.sources()
        now = self._source.identities()
        if any(now.get(topic) != identity for topic, identity in identities.items()):
            raise Conflict(
                f"a topic was deleted and created again: topic ids were {dict(identities)} and are "
                f"{now}; plan again"
            )

    def _commit(
        self,
        table: Table,
        dead: Table,
        written: Sequence[WrittenSlice],
        identities: Mapping[str, str],
    ) -> Appended:
        """Commit the files of one table."""
        covered = _covered(written)
        known = next_offsets(table)
        begins = {part.topic_partition: known.get(part.topic_partition, 0) for part in covered}
        _count_skipped(covered, begins)
        files = [file for each in written for file in each.files]
        name = written[0].source.table
        change = TableChange(
            files=[data_file_of(file, table) for file in files],
            begins=begins,
            ends={part.topic_partition: part.end for part in covered},
            appender=self._name,
            commit_id=self._unique(),
            identities=_only(identities, [part.topic for part in covered]),
        )
        try:
            dead_count = self._commit_dead(dead, written, covered)
            snapshot_id = commit(self._catalog, self._full_name(name), change, clock=self._clock)
        except Overloaded:
            self._discard(name, change.commit_id, files)
            raise
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

    def _discard(self, name: str, commit_id: str, files: Sequence[WrittenFile]) -> None:
        """Remove files that a full disk kept from being committed: the next round writes them
        again, and needs their space. Not with a catalog elsewhere, which may answer late."""
        table = self._load(name)
        if self._config.catalog or find_commit(table, commit_id) is not None:
            return
        store = open_store(table.location(), table.io)
        for file in files:
            store.unlink(file.path)

    def _commit_dead(
        self, dead: Table, written: Sequence[WrittenSlice], covered: Sequence[Covered]
    ) -> int:
        """Commit dead letters, unless an earlier round did. Most rounds have none, so the next
        offset of their table may be below `covered`."""
        known = next_offsets(dead)
        new = {
            part.topic_partition: part
            for part in covered
            if known.get(part.topic_partition, 0) <= part.begin
        }
        files = {
            each.source.topic_partition: [
                file
                for other in written
                if other.source.topic_partition == each.source.topic_partition
                for file in other.dead_files
            ]
            for each in written
            if each.source.topic_partition in new
        }
        files = {key: letters for key, letters in files.items() if letters}
        if not files:
            return 0
        change = TableChange(
            files=[data_file_of(file, dead) for letters in files.values() for file in letters],
            begins={key: known.get(key, 0) for key in files},
            ends={key: new[key].end for key in files},
            appender=self._name,
            commit_id=self._unique(),
        )
        commit(self._catalog, self._full_name(DEAD_LETTERS), change, clock=self._clock)
        return sum(file.row_count for letters in files.values() for file in letters)

    def set_aside(self, unfit: Sequence[UnfitRecords]) -> int:
        """Commit records that are no changes of keyed tables as dead letters, each once. Returns
        how many are new."""
        if not unfit:
            return 0
        self._target_count += 1
        return commit_letters(
            self._catalog,
            self._load(DEAD_LETTERS),
            unfit,
            appender=self._name,
            file_name=f"{self._name[:12]}-{self._target_count:08}",
            commit_id=self._unique(),
            clock=self._clock,
        )

    def _publish(self, sources: Iterable[SourcePartition]) -> None:
        """Publish the lake watermarks, as read back from the catalog."""
        offsets: dict[str, dict[TopicPartition, int]] = {}
        for source in sources:
            if source.table not in offsets:
                offsets[source.table] = next_offsets(self._load(source.table))
            self._source.publish(source, offsets[source.table].get(source.topic_partition, 0))

    def _load(self, name: str) -> Table:
        with catalog_calls(self._config):
            return self._catalog.load_table(self._full_name(name))

    def _unique(self) -> str:
        """Return a random 128-bit name."""
        return f"{self._rand.getrandbits(128):032x}"

    def _full_name(self, name: str) -> str:
        return f"{self._config.namespace}.{name}"


def _bytes_by_table(slices: Iterable[Slice]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for slice in slices:
        sizes[slice.source.table] = sizes.get(slice.source.table, 0) + slice.size_bytes
    return sizes


def _describe(
    span: tracing.Span, written: Sequence[WrittenSlice], done: Sequence[Appended]
) -> None:
    """Add attributes to a round's span. A round that stored only a node's own spans is not traced:
    its span would cause the next round."""
    offsets = sum(each.end - each.begin for each in written)
    span.note(commits=len(done), offsets=offsets, rows=sum(each.row_count for each in done))
    if offsets <= sum(each.own_count for each in written):
        span.drop()


def _only(identities: Mapping[str, str], topics: Iterable[str]) -> dict[str, str]:
    """Return the known ids of these topics."""
    return {topic: identities[topic] for topic in topics if topic in identities}


def _check_complete(slices: Sequence[Slice], written: Sequence[WrittenSlice]) -> None:
    """Raise `Conflict` unless the tasks wrote exactly what was planned."""
    planned = [(each.source, each.begin, each.end) for each in slices]
    actual = [(each.source, each.begin, each.end) for each in written]
    if planned != actual:
        raise Conflict(f"tasks wrote {actual}, but {planned} was planned")


def _covered(written: Sequence[WrittenSlice]) -> tuple[Covered, ...]:
    """Join the slices of each partition; they are adjacent."""
    ends: dict[TopicPartition, tuple[int, int]] = {}
    for each in written:
        begin, _ = ends.get(each.source.topic_partition, (each.begin, each.end))
        ends[each.source.topic_partition] = (begin, each.end)
    return tuple(
        Covered(topic=topic, partition=partition, begin=begin, end=end)
        for (topic, partition), (begin, end) in ends.items()
    )


def _count_skipped(covered: Sequence[Covered], begins: Mapping[TopicPartition, int]) -> None:
    """Count offsets that the log trimmed first. Only topics that do not await the lake have any."""
    for part in covered:
        count = part.begin - begins[part.topic_partition]
        if count:
            SKIPPED.add(count, topic=part.topic)
            logger.warning(
                "log trimmed before the lake read it",
                extra={"topic": part.topic, "partition": part.partition, "count": count},
            )
