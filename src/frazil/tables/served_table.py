"""ServedTable: one keyed table of a folder: opened, stepped, and opened again after a failure.

The files of a table are derived. So a table whose changes cannot be applied is closed, and read
again from files and log after a pause; files that cannot be written are written later. The log
keeps what is in no file yet, by the progress of a subscriber.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

import pyarrow as pa

from frazil.disk import Disk
from frazil.errors import Conflict, Corrupt, FrazilError, OutOfRange, TooLarge, Unavailable, Unknown
from frazil.log import ProgressKeeper, ReadableLog, record_at_time
from frazil.metrics import Histogram
from frazil.model import NS_PER_MS, Clock
from frazil.settings import TablesConfig
from frazil.tables.catalog import feeding_topic, find_table
from frazil.tables.change_log import LogChanges
from frazil.tables.definition import TableDefinition
from frazil.tables.table import KeyedTable, pressure_of
from frazil.tables.table_status import KeyedPartitionStatus, KeyedTableStatus, TableState
from frazil.tables.topic_feed import FeedCodec
from frazil.tables.writer import Token

logger = logging.getLogger(__name__)

NS_PER_S = 1000 * NS_PER_MS
RETRY_S, RETRY_S_MAX = 5.0, 300.0
"""Pause after a failure: doubled after each one in a row."""
OPEN_BYTES_FACTOR = 8
"""While files cannot be written, up to this many times `tables.seal_bytes` stay in memory."""
RELEASE_S = 60.0
"""How often changes that the lake has, and no file, are sealed, so that the log can go."""
SUBSCRIBER_PREFIX = "tables_"


@dataclass(frozen=True, slots=True, eq=False)
class SeedRows:
    """The rows of a partition as of an offset, as a lake has them."""

    batches: Iterable[pa.RecordBatch]
    end_offset: int
    next_row: int


FrozenTables = Callable[[TableDefinition, int], SeedRows | None]
"""Returns what the lake has of a partition; None if nothing."""

APPLY_MS = Histogram("frazil.tables.apply.ms", "Time one step of a keyed table takes.")


class ServedTable:
    """Stepped by one thread at a time; any thread may read."""

    def __init__(
        self,
        disk: Disk,
        log: ReadableLog,
        name: str,
        config: TablesConfig,
        clock: Clock,
        frozen: FrozenTables | None,
        codec: FeedCodec | None = None,
    ) -> None:
        """Open the files. Never raises: a failure is noted. `codec` reads the records of a topic
        that feeds the table."""
        self._disk = disk
        self._log = log
        self._config = config
        self._clock = clock
        self._frozen = frozen
        self._codec = codec
        self.name = name
        self.definition: TableDefinition | None = None
        """None if its file cannot be read."""
        self.table: KeyedTable | None = None
        """None after a failure."""
        self.topic_id: UUID | None = None
        self.failure: str | None = None
        """Why the table cannot be used."""
        self.trouble: str | None = None
        """Why its files cannot be written now."""
        self.start: Token = {}
        """What was durable when the table was opened, until it is applied."""
        self._frozen_offsets: Token = {}
        """What the lake has, if a topic feeds the table."""
        self._keeper: ProgressKeeper | None = None
        self._kept: Token = {}
        """What the log was told to be in files."""
        self._failure_count = 0
        self._retry_ns = 0
        self._released_ns = clock.monotonic_ns()
        self._horizons: Token = {}
        """What may be compacted, while there is something to compact."""
        self._checkpoint_ns: int | None = None
        self._open()

    def _open(self) -> None:
        try:
            self.definition = find_table(self._disk, self.name)
            topic = feeding_topic(self._log, self.definition)
            self.topic_id = topic.topic_id
            if self.definition.feed is not None and self._codec is None:
                raise Unavailable("this process cannot read the records of topics")
            changes = LogChanges(self._log)
            table = KeyedTable(self._disk, changes, self.definition, self._config, self._codec)
            self._seed(table)
            self.start = {
                number: partition.current_view().last_stable_offset
                for number, partition in enumerate(topic.partitions)
            }
            self._keeper = self._log.keep_progress(
                f"{SUBSCRIBER_PREFIX}{self.name}", self.definition.topic
            )
            for number, fold in enumerate(table.folds):
                # Files may have been lost since; what the log still has of them is needed again.
                self._keeper.reopen(number, fold.sealed_offset, self.start[number])
            self._kept = {}
            self._keep_log(table)
        except Exception as error:  # noqa: BLE001 # top of loop: one table must not stop the others
            self._fail(error)
            return
        self.table, self.failure, self.trouble = table, None, None

    def _seed(self, table: KeyedTable) -> None:
        """Make files from rows of the lake, where the log no longer has what they lack."""
        for number, fold in enumerate(table.folds):
            if not fold.needs_seed or self._frozen is None:
                continue
            rows = self._frozen(table.definition, number)
            if rows is not None:
                table.seed(number, rows.batches, end_offset=rows.end_offset, next_row=rows.next_row)
                logger.warning(
                    "keyed table rebuilt from the lake",
                    extra={"table": self.name, "partition": number, "offset": rows.end_offset},
                )

    def usable(self) -> KeyedTable:
        """Return the table. Raises `Unavailable` if it has failed."""
        table = self.table
        if table is None:
            raise Unavailable(
                f"table {self.name} cannot be used: {self.failure}; see the log of the node"
            )
        return table

    def usable_definition(self) -> TableDefinition:
        """Return the definition. Raises `Unavailable` if it cannot be read."""
        if self.definition is None:
            self.usable()
        assert self.definition is not None
        return self.definition

    @property
    def is_caught_up(self) -> bool:
        """Whether everything that was durable at the start is applied."""
        return self.table is not None and self.table.has(self.start)

    @property
    def is_blocked(self) -> bool:
        """Whether memory is full of what cannot be written to files."""
        if self.trouble is None or self.table is None:
            return False
        return self.table.open_bytes > OPEN_BYTES_FACTOR * self._config.seal_bytes

    def step(self) -> int:
        """Apply what is new, and seal what is large. Returns how many offsets were applied. Never
        raises: a failure is noted."""
        is_due = self._clock.monotonic_ns() >= self._retry_ns
        if self.table is None and is_due:
            self._open()
        table = self.table
        if table is None:
            return 0
        count = 0 if self.is_blocked else self._apply(table)
        if self.table is not None and (self.trouble is None or is_due):
            self._maintain(table)
        return count

    def _apply(self, table: KeyedTable) -> int:
        begin_ns = self._clock.monotonic_ns()
        try:
            if table.definition.feed is not None:
                feeding_topic(self._log, table.definition)
            count = table.apply()
        except Exception as error:  # noqa: BLE001 # top of loop: one table must not stop the others
            table.close()
            self._fail(error)
            return 0
        if count:
            APPLY_MS.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)
            self._failure_count = 0
        if self.start and self.is_caught_up:
            self.start = {}
        return count

    def _maintain(self, table: KeyedTable) -> None:
        before = table.checkpointed_offsets
        try:
            table.maintain()
            self._release(table)
            if self._horizons and not table.compact(self._horizons):
                self._horizons = {}
            self._keep_log(table)
            self.trouble = None
        except (FrazilError, OSError) as error:
            self.trouble = f"its files cannot be written: {error}"
            self._retry_ns = self._clock.monotonic_ns() + int(RETRY_S * NS_PER_S)
            logger.warning("keyed table not sealed", extra=self._fields(error))
        if table.checkpointed_offsets != before:
            self._checkpoint_ns = self._clock.monotonic_ns()

    def _release(self, table: KeyedTable) -> None:
        """Seal what the lake has, and only memory besides: the log keeps it until then. See what
        may be compacted; each step rewrites one file."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._released_ns < RELEASE_S * NS_PER_S:
            return
        self._released_ns = now_ns
        for number, fold in enumerate(table.folds):
            lake = self._frozen_offset(table.definition, number)
            if lake is not None and lake > fold.sealed_offset:
                fold.seal()
        table.release_memory()
        self._horizons = {
            number: offset
            if self._frozen is None
            else min(offset, self._frozen_offset(table.definition, number) or 0)
            for number, offset in self._history_offsets(table).items()
        }

    def _history_offsets(self, table: KeyedTable) -> Token:
        """Return the first offsets that are not older than `tables.history_ms`, by partition."""
        begin_ms = self._clock.wall_ms() - self._config.history_ms
        offsets: Token = {}
        for number, fold in enumerate(table.folds):
            record = record_at_time(self._log.partition(table.definition.topic, number), begin_ms)
            end = fold.end_offset
            offsets[number] = end if record is None else min(record.offset, end)
        return offsets

    def note_frozen(self, partition: int, offset: int) -> None:
        """Record that the lake has the changes below an offset."""
        self._frozen_offsets = {**self._frozen_offsets, partition: offset}

    def _frozen_offset(self, definition: TableDefinition, partition: int) -> int | None:
        """Return the first offset that the lake does not have; None if unknown. What the lake has
        of a topic that feeds the table are its records, not the rows of the table."""
        if definition.feed is not None:
            return self._frozen_offsets.get(partition)
        return self._log.lake_watermark(definition.topic, partition)

    def _keep_log(self, table: KeyedTable) -> None:
        """Tell the log what is in files now."""
        assert self._keeper is not None
        sealed = {number: fold.sealed_offset for number, fold in enumerate(table.folds)}
        if sealed == self._kept:
            return
        for number, offset in sealed.items():
            self._keeper.finish(number, self._kept.get(number, 0), offset)
        self._keeper.step()
        self._kept = sealed

    def _fail(self, error: Exception) -> None:
        is_expected = isinstance(
            error, Conflict | Corrupt | OutOfRange | OSError | TooLarge | Unavailable | Unknown
        )
        logger.error(
            "keyed table failed",
            extra=self._fields(error),
            exc_info=None if is_expected else error,
        )
        self.table = None
        self.failure = str(error) or type(error).__name__
        pause_s = min(RETRY_S_MAX, RETRY_S * 2.0 ** min(self._failure_count, 10))
        self._failure_count += 1
        self._retry_ns = self._clock.monotonic_ns() + int(pause_s * NS_PER_S)

    def _fields(self, error: Exception) -> dict[str, str]:
        return {"table": self.name, "reason": str(error)}

    def change_definition(self, definition: TableDefinition) -> None:
        """Use a later version of the definition, which is durable."""
        if self.table is not None:
            self.table.change_definition(definition)
        self.definition = definition

    def status(self, all_key_bytes: int) -> KeyedTableStatus:
        """Return how the table does. `all_key_bytes`: of all tables."""
        table = self.table
        known = self.definition
        key = [] if known is None else list(known.key)
        columns = 0 if known is None else len(known.columns)
        if table is None:
            return KeyedTableStatus(
                table=self.name, state="failed", trouble=self.failure, key=key, columns=columns
            )
        view = table.view()
        partitions = [
            KeyedPartitionStatus(
                partition=number,
                indexed=rows.end_offset,
                sealed=fold.sealed_offset,
                first=fold.first_offset,
                iceberg=self._frozen_offset(table.definition, number),
                written=max(rows.end_offset, fold.log.view.last_stable_offset),
            )
            for number, (rows, fold) in enumerate(zip(view.partitions, table.folds, strict=True))
        ]
        state: TableState = "ok" if self.is_caught_up else "catching_up"
        age_s = None
        if self._checkpoint_ns is not None:
            age_s = (self._clock.monotonic_ns() - self._checkpoint_ns) / NS_PER_S
        return KeyedTableStatus(
            table=self.name,
            state=state if self.trouble is None else "degraded",
            trouble=self.trouble,
            key=key,
            columns=columns,
            partitions=partitions,
            keys=view.live_count,
            key_bytes=table.key_bytes,
            row_bytes=table.row_bytes,
            file_count=sum(fold.file_count for fold in table.folds),
            dead_rows=table.dead_rows,
            lag_offsets=sum(each.written - each.indexed for each in partitions),
            dead_changes=sum(fold.dead_count for fold in table.folds),
            pressure=pressure_of(all_key_bytes, self._config),
            checkpoint_age_s=age_s,
        )

    def close(self, *, save: bool) -> None:
        """Close the table; with `save`, the next start reads nothing of the log."""
        table = self.table
        if table is None:
            return
        self.table = None
        self.failure = "it is closed"
        if save:
            try:
                table.checkpoint()
                self._keep_log(table)
            except (FrazilError, OSError) as error:  # derived: the next start reads the log
                logger.warning("keyed table not saved", extra=self._fields(error))
        table.close()
