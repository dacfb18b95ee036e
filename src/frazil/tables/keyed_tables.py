"""KeyedTables: all keyed tables of a data folder, open.

    write ──> log ──commit──> thread frazil-tables: apply, seal, checkpoint ──> views ──> wait, view

One thread steps all tables. A caller that waits for its own write steps the table itself, and does
not wait for that thread to wake up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from uuid import UUID

import pyarrow as pa

from frazil.disk import Disk
from frazil.errors import Conflict, FrazilError, Malformed, Overloaded, Unavailable, Unknown
from frazil.log import Append, AppendResult, ReadablePartition
from frazil.metrics import Histogram
from frazil.model import NS_PER_MS, Clock
from frazil.settings import TablesConfig
from frazil.tables.catalog import alter_table, create_table, drop_table, finish_drops
from frazil.tables.changes import Operation
from frazil.tables.definition import TableDefinition
from frazil.tables.definition_file import table_names
from frazil.tables.load_files import PendingLoad, TableLoads
from frazil.tables.load_steps import append_load, check_known, last_portions
from frazil.tables.owner import TableOwner
from frazil.tables.served_table import NS_PER_S, FrozenTables, ServedTable
from frazil.tables.table import KeyedView
from frazil.tables.table_status import KeyedTableStatus
from frazil.tables.times import ChangeOrigin, offsets_at, origins_at
from frazil.tables.topic_feed import FeedCodec
from frazil.tables.writer import Token, portion_digest, portions_of, table_appends
from frazil.tables.written_rows import WrittenRows, join_appends

logger = logging.getLogger(__name__)

FOREVER = -1.0
"""A timeout of a lock."""
IDLE_S = 0.1
"""How often to look for new tables and for the stop, without new records."""
START_WAIT_S = 10.0
"""How long a reader waits for changes from before the start."""
LATEST_WAIT_S = 10.0
"""How long a reader waits for what was durable when it began."""

WRITE_MS = Histogram("frazil.tables.write.ms", "Time a durable write to a keyed table takes.")


class KeyedTables:
    """Any thread may use it. Closed before the log."""

    def __init__(
        self,
        disk: Disk,
        log: TableOwner,
        config: TablesConfig | None = None,
        *,
        clock: Clock,
        check_name: Callable[[str], None] = lambda _: None,
        frozen: FrozenTables | None = None,
        codec: FeedCodec | None = None,
    ) -> None:
        """Open all tables of the folder. `start` starts the thread; without it, call `step`.

        `check_name` raises if no table may be created under a name. With `frozen` there is a lake:
        nothing is compacted before it has it, and files that the log cannot make again are made
        from its rows. `codec` reads the records of topics that feed tables.
        """
        self._disk = disk
        self._log = log
        self._config = config or TablesConfig()
        self._clock = clock
        self._check_name = check_name
        self._frozen = frozen
        self._codec = codec
        self._next = threading.Lock()
        self._turn = threading.Lock()
        """Held to step, create, change or drop a table. `_next` makes it fair."""
        self._stepped = threading.Condition()
        self._tables: Mapping[str, ServedTable] = {}
        """Replaced as a whole."""
        self._is_closing = False
        self._thread: threading.Thread | None = None
        self.died: BaseException | None = None
        """Why the thread has ended; None while it runs."""
        finish_drops(disk, log)
        for name in table_names(disk):
            self._put(name)

    def start(self) -> None:
        """Start the thread that steps the tables."""
        self._thread = threading.Thread(target=self._run, name="frazil-tables", daemon=True)
        self._thread.start()

    def names(self) -> list[str]:
        return sorted(self._tables)

    def definition(self, name: str) -> TableDefinition:
        """Return the definition of a table. Raises `Unknown` if there is none."""
        return self._find(name).usable_definition()

    def view(self, name: str) -> KeyedView:
        """Return the rows as of the last step; after a start, once all changes from before it are
        applied. Raises `Unavailable` if the table has failed."""
        found = self._find(name)
        if not found.is_caught_up:
            return self.wait(name, {}, START_WAIT_S)
        return found.usable().view()

    def latest(self, name: str, partitions: Iterable[int] | None = None) -> KeyedView:
        """Return a view that has what is durable now in these partitions, or in all. Raises
        `Unavailable` if that is not applied within a few seconds."""
        found = self._find(name)
        if not found.is_caught_up:
            self.wait(name, {}, START_WAIT_S)
        table = found.usable()
        durable = table.durable(range(len(table.folds)) if partitions is None else partitions)
        if table.has(durable):
            return table.view()
        return self.wait(name, durable, LATEST_WAIT_S)

    def wait(self, name: str, token: Token, timeout_s: float) -> KeyedView:
        """Return a view that has a write, by its token. Raises `Unavailable` if there is none
        within this time."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * NS_PER_S)
        _check_token(self.definition(name), token)
        while True:
            found = self._find(name)
            table = found.usable()
            if found.is_caught_up and table.has(token):
                return table.view()
            left_s = (deadline_ns - self._clock.monotonic_ns()) / NS_PER_S
            if left_s <= 0 or self._is_closing:
                raise Unavailable(
                    f"table {name} has applied the changes below {table.view().offsets}, not all "
                    f"below {token or found.start}, within {timeout_s:g} s; retry in a moment"
                )
            if not self._step_one(found, timeout_s=left_s):
                if found.is_blocked:
                    raise Unavailable(f"table {name} applies no changes: {found.trouble}")
                with self._stepped:
                    self._stepped.wait(min(left_s, IDLE_S))

    def offsets_at(self, name: str, time_ms: int) -> Token:
        """Return the offsets up to which changes had been written at a time. Raises `OutOfRange` if
        the log begins later."""
        return offsets_at(self._log, self.definition(name), time_ms)

    def origins_at(
        self, name: str, partition: int, offsets: Sequence[int]
    ) -> list[ChangeOrigin | None]:
        """Return when and by whom changes, by their offsets in order, were written; None for those
        that the log no longer has."""
        definition = self.definition(name)
        return origins_at(self._log.partition(definition.topic, partition), definition, offsets)

    def create(self, definition: TableDefinition) -> None:
        """Create a table, durably. Raises `Conflict` if there is one of this name."""
        self._check_name(definition.name)
        with self._exclusively():
            create_table(self._disk, self._log, definition)
            self._put(definition.name)

    def note_frozen(self, name: str, partition: int, offset: int) -> None:
        """Record that the lake has the changes of a fed table below an offset."""
        self._find(name).note_frozen(partition, offset)

    def alter(self, definition: TableDefinition) -> None:
        """Use a later version of a definition, durably. Raises `Conflict` if another came first."""
        with self._exclusively():
            found = self._find(definition.name)
            alter_table(self._disk, definition)
            found.change_definition(definition)

    def drop(self, name: str) -> None:
        """Drop a table with its changes, durably."""
        with self._exclusively():
            found = self._find(name)
            found.usable_definition()
            found.close(save=False)
            try:
                drop_table(self._disk, self._log, name)
            finally:
                self._tables = {each: self._tables[each] for each in self._tables if each != name}
                if name in table_names(self._disk):  # nothing was dropped
                    self._put(name)

    def write(
        self,
        name: str,
        operation: Operation,
        rows: pa.RecordBatch | pa.Table,
        *,
        expects: Token | None = None,
        digest: bytes | None = None,
        by: str | None = None,
    ) -> Token:
        """Write rows, durably. Returns the token of the write.

        `expects`: end offsets of partitions. Raises `Conflict` if one that is written to has moved
        on; each partition is checked on its own. `digest`: a repetition of the write is answered,
        and not stored again. `by`: who writes, for the history of rows.
        """
        return self.write_rows(name, operation, rows, expects=expects, digest=digest, by=by).token

    def write_rows(
        self,
        name: str,
        operation: Operation,
        rows: pa.RecordBatch | pa.Table,
        *,
        expects: Token | None = None,
        digest: bytes | None = None,
        by: str | None = None,
    ) -> WrittenRows:
        """Do what `write` does, and tell whether it was a repetition."""
        if expects is not None:
            sent = self.begin_write(name, operation, rows, expects=expects, digest=digest, by=by)
            return sent.result()
        token: Token = {}
        begin, is_duplicate = 0, rows.num_rows > 0
        for portion in portions_of(rows):
            # Each waits for the one before: changes of a key stay in order, whatever is refused.
            part_digest = portion_digest(digest, begin, portion.num_rows)
            done = self.begin_write(name, operation, portion, digest=part_digest, by=by).result()
            token |= done.token
            is_duplicate = is_duplicate and done.is_duplicate
            begin += portion.num_rows
        return WrittenRows(token, is_duplicate)

    def begin_write(
        self,
        name: str,
        operation: Operation,
        rows: pa.RecordBatch | pa.Table,
        *,
        expects: Token | None = None,
        digest: bytes | None = None,
        by: str | None = None,
    ) -> Future[WrittenRows]:
        """Check and send rows that fit into one batch of the log for each partition. The future is
        done when they are durable."""
        begin_ns = self._clock.monotonic_ns()
        found = self._find(name)
        table = found.usable()
        definition = table.definition
        if expects is not None:
            _check_token(definition, expects)
        others = self._key_bytes() - table.key_bytes
        appends = table_appends(
            definition,
            operation,
            rows,
            timestamp_ms=self._clock.wall_ms(),
            check_keys=lambda partition, keys: table.check_new_keys(partition, keys, others),
            expects=expects,
            digest=digest,
            by=by,
        )
        written = join_appends(self._send(definition.topic, found.topic_id, appends))
        written.add_done_callback(lambda _: self._note_write(begin_ns))
        return written

    def _send(
        self, topic: str, topic_id: UUID | None, appends: list[tuple[int, Append]]
    ) -> list[tuple[int, Future[AppendResult]]]:
        """Send one append for each partition. Raises if none was sent."""
        sent: list[tuple[int, Future[AppendResult]]] = []
        for number, append in appends:
            try:
                future = self._log.append(topic, append, partition=number, topic_id=topic_id)
            except FrazilError as error:
                if not sent:
                    raise
                future = Future()
                future.set_exception(error)
            sent.append((number, future))
        return sent

    def loads(self, name: str) -> TableLoads:
        """Return the files of the loads of a table."""
        self.definition(name)
        return TableLoads(self._disk, name)

    def load_history(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield each table that was loaded from files, and its ledger."""
        for name in self.names():
            ledger = TableLoads(self._disk, name).ledger()
            if ledger.num_rows:
                yield name, ledger

    def check_load(
        self,
        name: str,
        portions: Callable[[], Iterable[pa.RecordBatch]],
        known_loads: Collection[str] | None,
        batch_bytes_max: int,
    ) -> dict[int, int]:
        """Return the last portion of a load that has rows of each partition. Raises `Overloaded` or
        `TooLarge` if it cannot be appended, and `Conflict` if the log has rows of a load that is
        not one of `known_loads`, unless that is None."""
        found = self._find(name)
        table, definition = found.usable(), found.usable_definition()
        check_known(self._log, definition, known_loads)
        others = self._key_bytes() - table.key_bytes
        return last_portions(
            definition,
            portions,
            lambda partition, keys: table.check_new_keys(partition, keys, others),
            lambda partition, count: table.has_room(partition, count, others),
            batch_bytes_max,
        )

    def append_load(
        self,
        name: str,
        load: PendingLoad,
        *,
        check: Callable[[], None],
        pause: Callable[[Overloaded, int], None],
    ) -> Token:
        """Append what the log does not have of a load that has begun. Returns the token of its
        rows. Can be repeated after any error but `Conflict`: then the table is another one."""
        found = self._find(name)
        definition = found.usable_definition()
        if definition.table_id != load.table_id:
            raise Conflict(f"table {name} was dropped and created again during a load")
        loads = TableLoads(self._disk, name)
        return append_load(
            self._log,
            definition,
            found.topic_id,
            load,
            lambda: loads.portions(load),
            now_ms=self._clock.wall_ms,
            check=check,
            pause=pause,
        )

    def _note_write(self, begin_ns: int) -> None:
        WRITE_MS.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)

    def status(self, name: str) -> KeyedTableStatus:
        """Return how a table does. Reads no file."""
        return self._find(name).status(self._key_bytes())

    def trouble(self, name: str) -> str | None:
        """Return what is wrong with a table; None if nothing is, or if there is no such table."""
        found = self._tables.get(name)
        return None if found is None else found.failure or found.trouble

    def statuses(self) -> list[KeyedTableStatus]:
        """Return how all tables do, by name."""
        key_bytes, tables = self._key_bytes(), self._tables
        return [tables[name].status(key_bytes) for name in sorted(tables)]

    def _key_bytes(self) -> int:
        tables = [found.table for found in self._tables.values()]
        return sum(table.key_bytes for table in tables if table is not None)

    def catch_up(self) -> None:
        """Step until everything durable is applied. A table that fails is left behind."""
        while self.step():
            continue

    def step(self) -> int:
        """Apply what is new, and seal what is large. Returns how many offsets were applied."""
        return sum(self._step_one(found) for found in self._tables.values())

    def _step_one(self, found: ServedTable, *, timeout_s: float = FOREVER) -> int:
        with self._exclusively(timeout_s) as is_mine:
            if not is_mine or self._is_closing or self._tables.get(found.name) is not found:
                return 0
            count = found.step()
        if count:
            with self._stepped:
                self._stepped.notify_all()
        return count

    @contextmanager
    def _exclusively(self, timeout_s: float = FOREVER) -> Iterator[bool]:
        """Take the turn. Who waits for it comes before the next step of a table. Yields whether it
        was there within this time."""
        is_next = self._next.acquire(timeout=timeout_s)
        is_mine = is_next and self._turn.acquire(timeout=timeout_s)
        if is_next:
            self._next.release()
        try:
            yield is_mine
        finally:
            if is_mine:
                self._turn.release()

    def _run(self) -> None:
        try:
            while not self._is_closing:
                if not self.step():
                    self._log.wait_for_any(self._awaited(), IDLE_S)
        except BaseException as error:  # top of loop: reported as health
            logger.critical("the thread of keyed tables has stopped", exc_info=error)
            self.died = error

    def _awaited(self) -> list[tuple[ReadablePartition, int]]:
        """Return the next offset of each partition."""
        return [
            (self._log.partition(fold.log.topic, fold.log.index), fold.end_offset)
            for found in self._tables.values()
            if (table := found.table) is not None and not found.is_blocked
            for fold in table.folds
        ]

    def _put(self, name: str) -> None:
        opened = ServedTable(
            self._disk, self._log, name, self._config, self._clock, self._frozen, self._codec
        )
        self._tables = {**self._tables, name: opened}

    def _find(self, name: str) -> ServedTable:
        found = self._tables.get(name)
        if found is None:
            raise Unknown(f"there is no table {name}")
        return found

    def close(self) -> None:
        """Save all tables and stop."""
        self._is_closing = True
        if self._thread is not None:
            self._thread.join()
        with self._exclusively():
            for found in self._tables.values():
                found.close(save=True)


def _check_token(definition: TableDefinition, token: Token) -> None:
    for number, offset in token.items():
        if not 0 <= number < definition.partitions or offset < 0:
            raise Malformed(
                f"table {definition.name} has {definition.partitions} partitions; there is no "
                f"offset {offset} of partition {number}"
            )
