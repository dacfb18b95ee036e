"""FedTable: a keyed table that a topic of a foreign Kafka feeds.

Its files are derived: from the rows of the lake, and from the records after them. They are used if
they go on exactly from what the lake has; otherwise they are made again from its rows. So it does
not matter whether Kafka still has what the lake has.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from frazil.disk import Disk
from frazil.embedded import FEED_CODEC
from frazil.errors import Conflict, FrazilError, Malformed, OutOfRange, Unavailable
from frazil.keyed_lake import lake_definition, partition_changes
from frazil.lake import FrozenPosition, KafkaChanges, PartitionChanges
from frazil.log import Record
from frazil.model import NS_PER_MS, Clock, MiB, TopicPartition
from frazil.settings import TablesConfig
from frazil.tables import FrozenTables, KeyedTable, RowsView, TableDefinition, unfit_records

logger = logging.getLogger(__name__)

FOLD_MS = 10_000
"""How long records are applied before a round freezes what there is."""
UNFIT_BYTES_MAX = 64 * MiB
"""Records in memory that are to be dead letters. Above it, a round freezes what there is."""
TIDY_MS = 60_000
"""How often what the lake has is sealed, and files are compacted."""


class FedTable:
    """Owned by the lake's thread."""

    def __init__(
        self,
        disk: Disk,
        source: KafkaChanges,
        definition: TableDefinition,
        topic_id: str | None,
        frozen: FrozenTables,
        config: TablesConfig,
        clock: Clock,
    ) -> None:
        """`frozen` reads rows of the lake. Opens nothing."""
        self._disk = disk
        self._source = source
        self.definition = definition
        self.lake_definition = lake_definition(definition, topic_id)
        self._topic_id = topic_id
        self._frozen = frozen
        self._config = config
        self._clock = clock
        self._table: KeyedTable | None = None
        self._unfit: dict[int, list[tuple[Record, str]]] = {}
        """By partition, in order: those that are not in the lake as dead letters."""
        self._frozen_offsets: dict[int, int] = {}
        self._tidied_ns = clock.monotonic_ns()

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def key_bytes(self) -> int:
        """Memory of the key index."""
        return 0 if self._table is None else self._table.key_bytes

    def places(self) -> list[TopicPartition]:
        """Return the partitions of the topic, in order."""
        count = self.definition.partitions
        return [TopicPartition(self.definition.topic, number) for number in range(count)]

    def check_topic(self) -> None:
        """Raise `OutOfRange` if the topic, as of the last refresh, is not the one that the table is
        made of."""
        topic = self._source.topic(self.definition.topic)
        if topic.identity != self._topic_id:
            raise OutOfRange(
                f"topic {topic.name} was deleted and created again: table {self.name} has rows of "
                f"topic id {self._topic_id}, and the topic's id is {topic.identity}. Fill tables "
                "in another namespace (lake.namespace), or send to a topic with another name"
            )
        if len(topic.partitions) != self.definition.partitions:
            raise OutOfRange(
                f"topic {topic.name} has {len(topic.partitions)} partitions, and had "
                f"{self.definition.partitions}: keys may have moved. To fill table {self.name} "
                "again from what the topic has, drop it in the catalog, then start the appender"
            )

    def changes(
        self, begins: Mapping[int, FrozenPosition], bytes_max: int
    ) -> list[PartitionChanges]:
        """Apply what is committed now, and return what has changed since these positions. Raises
        what `KeyedSource.changes` does, and `OutOfRange` if the topic is another one now."""
        self._refresh()
        ends = {
            number: self._source.offsets(place).last_stable_offset
            for number, place in enumerate(self.places())
        }
        try:
            table = self._opened(begins)
            self._fold(table, ends)
            self._tidy(table)
        except (FrazilError, OSError) as error:
            self._drop()
            if isinstance(error, OSError):
                reason = f"files of table {self.name} were not read or written: {error}"
                raise Unavailable(reason) from error
            raise
        self._refresh()  # all records that were read were of this topic, if it is still there
        found = [
            partition_changes(self.name, number, rows, begins[number], bytes_max)
            for number, rows in enumerate(table.view().partitions)
        ]
        return [self._with_unfit(each) for each in found if each.end.offset > each.begin.offset]

    def _refresh(self) -> None:
        self._source.refresh([self.definition.topic])
        self.check_topic()

    def _with_unfit(self, changes: PartitionChanges) -> PartitionChanges:
        end = changes.end.offset
        unfit = [each for each in self._unfit.get(changes.partition, ()) if each[0].offset < end]
        return PartitionChanges(
            partition=changes.partition,
            begin=changes.begin,
            end=changes.end,
            dead=changes.dead,
            batches=changes.batches,
            unfit=unfit,
        )

    def note_frozen(self, partition: int, offset: int) -> None:
        """Record that the lake has everything below an offset."""
        self._frozen_offsets[partition] = offset
        unfit = self._unfit.get(partition, [])
        self._unfit[partition] = [each for each in unfit if each[0].offset >= offset]

    def _opened(self, begins: Mapping[int, FrozenPosition]) -> KeyedTable:
        """Return the table, after making files of rows of the lake that do not go on from there."""
        is_new = self._table is None
        if self._table is None:
            self._unfit = {}
            self._table = KeyedTable(
                self._disk,
                self._source,
                self.definition,
                self._config,
                FEED_CODEC,
                self._note_unfit,
            )
        table = self._table
        for number, place in enumerate(self.places()):
            begin = begins[number]
            fold = table.folds[number]
            if begin.offset and not _continues(fold.view, begin):
                self._source.check_begin(place, begin.offset)
                self._seed(table, number, begin)
            elif is_new:
                begin_offset = max(begin.offset, self._definition_start(number))
                self._look_for_unfit(place, begin_offset, fold.end_offset)
        return table

    def _definition_start(self, partition: int) -> int:
        assert self.definition.feed is not None
        return self.definition.feed.starts[partition]

    def _seed(self, table: KeyedTable, partition: int, begin: FrozenPosition) -> None:
        rows = self._frozen(self.definition, partition)
        if rows is None or (rows.end_offset, rows.next_row) != (begin.offset, begin.row):
            raise Conflict(f"{self.name} was changed in the lake meanwhile; plan again")
        self._unfit[partition] = []
        count = table.seed(
            partition, rows.batches, end_offset=rows.end_offset, next_row=rows.next_row
        )
        logger.info(
            "keyed table made from the lake",
            extra={
                "table": self.name,
                "partition": partition,
                "offset": rows.end_offset,
                "rows": count,
            },
        )

    def _look_for_unfit(self, place: TopicPartition, begin: int, end: int) -> None:
        """Read again what files have, and the lake has not: its dead letters are in no file."""
        for records in self._source.read(place, begin, end):
            for record, reason in unfit_records(self.definition, records, FEED_CODEC):
                self._note_unfit(place.partition, record, reason)

    def _note_unfit(self, partition: int, record: Record, reason: str) -> None:
        """Note a record, once: one that changes a key is two changes."""
        unfit = self._unfit.setdefault(partition, [])
        if not unfit or unfit[-1][0].offset != record.offset:
            unfit.append((record, reason))

    def _fold(self, table: KeyedTable, ends: dict[int, int]) -> None:
        deadline_ns = self._clock.monotonic_ns() + FOLD_MS * NS_PER_MS
        applied = 0
        try:
            while not table.has(ends):
                applied += table.apply()
                table.maintain()
                # If nothing comes, the client says why in the end.
                is_late = applied > 0 and self._clock.monotonic_ns() > deadline_ns
                if is_late or self._unfit_bytes() > UNFIT_BYTES_MAX:
                    break
        except Conflict as error:  # a key in two partitions: trying again does not help
            raise Malformed(f"table {self.name}: {error}") from error
        finally:
            table.close()  # its readers: the next round connects again

    def _unfit_bytes(self) -> int:
        return sum(
            len(record.value or b"") + len(record.key or b"") + len(reason)
            for unfit in self._unfit.values()
            for record, reason in unfit
        )

    def _tidy(self, table: KeyedTable) -> None:
        """Now and then, seal what the lake has, so that a start need not read it; compact."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._tidied_ns < TIDY_MS * NS_PER_MS:
            return
        self._tidied_ns = now_ns
        for number, fold in enumerate(table.folds):
            if self._frozen_offsets.get(number, 0) > fold.sealed_offset:
                fold.seal()
        while table.compact(self._frozen_offsets):
            continue
        table.release_memory()

    def _drop(self) -> None:
        """Forget what is in memory: after an error it is read again from files, lake and Kafka."""
        if self._table is not None:
            self._table.close()
            self._table = None

    def save(self) -> None:
        """Save everything, so that the next start reads nothing again. Derived: a failure is only
        logged."""
        if self._table is None:
            return
        try:
            self._table.checkpoint()
        except (FrazilError, OSError) as error:
            logger.warning(
                "keyed table not saved", extra={"table": self.name, "reason": str(error)}
            )
        self._drop()


def _continues(view: RowsView, begin: FrozenPosition) -> bool:
    """Return whether rows go on from what the lake has: they know its offset, and have numbered
    row versions up to there alike."""
    if not view.first_offset <= begin.offset <= view.end_offset:
        return False
    return view.as_of(begin.offset).row_count == begin.row
