"""KeyedLoads: files of stages become upserts of keyed tables, each row exactly once.

    tasks ──read, cast──> staged rows ──begin──> pending.ckpt ──steps──> log ──finish──> ledger

A load has begun when `pending.ckpt` is durable: before that nothing of it is in the table, and
after that it is finished, by this process or the next. The rows that are appended are those that
were staged, portion by portion, and the log says which portion is next: so none is repeated over
what others have written since. Loads of one table are appended one after the other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import msgspec
import pyarrow as pa

from frazil.definitions import CopyIntoTable
from frazil.disk import is_full
from frazil.errors import (
    Conflict,
    FrazilError,
    Malformed,
    Overloaded,
    Rejected,
    Unavailable,
    Unknown,
    Unresolved,
)
from frazil.lake import LoadChange, LoadConflict, LoadedFile
from frazil.load.copy.row_checks import KeyedRows
from frazil.load.copy.staged_rows import StagedTarget, staged_rows
from frazil.load.copy.target import OpenRows, OpenWriter
from frazil.model import NS_PER_MS, Clock
from frazil.model.arrow import LOADED, loaded_keys
from frazil.tables import (
    PORTION_BYTES,
    KeyedTables,
    PendingLoad,
    TableDefinition,
    TableLoads,
    Token,
)

logger = logging.getLogger(__name__)

APPEND_BYTES_MAX = 32 * 1024 * 1024
"""Of one batch that is sent to the log's owner."""
BATCH_SHARE, ROW_SHARE = 4, 2
"""A portion, and a row, may take these shares of a batch of the log."""
FULL_S = 60.0
"""How long a portion waits for room in the log before its load is interrupted."""
RETRY_S = 5.0
"""Pause before an interrupted load goes on."""
TURN_S = 0.2
"""How often a load that waits for another one looks whether it was cancelled."""
VISIBLE_S = 10.0
"""How long a load waits until queries see its rows."""


class KeyedLoads:
    """The loads of all keyed tables. Any thread may use it."""

    def __init__(
        self, tables: KeyedTables, root: str, *, clock: Clock, batch_bytes_max: int
    ) -> None:
        """`root` is the data folder, `batch_bytes_max` the largest batch of its log."""
        self._tables = tables
        self._root = root
        self._clock = clock
        self._batch_bytes_max = min(batch_bytes_max, APPEND_BYTES_MAX)
        self._changed = threading.Condition()
        self._turns: dict[str, threading.Lock] = {}
        self._interrupted: set[str] = set()
        """Tables with a load that has begun, and that nobody appends now."""
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="frazil-loads", daemon=True)
        for name in tables.names():
            self._recover(name)

    def start(self) -> None:
        """Start the thread that goes on with interrupted loads."""
        self._thread.start()

    def close(self) -> None:
        """Interrupt what is being appended; the next process goes on."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def has(self, name: str) -> bool:
        """Return whether there is a keyed table of this name."""
        return name in self._tables.names()

    def ledger(self, name: str) -> pa.Table:
        """Return the files of a table."""
        return self._tables.loads(name).ledger()

    def check(self, statement: CopyIntoTable) -> TableDefinition:
        """Return the table of a statement. Raises `Rejected` if it cannot be loaded like this."""
        definition = self._tables.definition(statement.table)
        name = definition.name
        if definition.feed is not None:
            raise Rejected(f"table {name} is fed by topic {definition.feed.topic}; write there")
        if statement.add_columns:
            raise Malformed(
                f"{name} is a keyed table: ALTER TABLE {name} ADD COLUMN … adds columns, not "
                "ADD_COLUMNS=true"
            )
        if statement.columns:
            raise Malformed(f"{name} is a keyed table, which has its columns: leave out the list")
        return definition

    @contextmanager
    def copy(self, name: str, check: Callable[[], None]) -> Iterator[KeyedCopy]:
        """Yield what loads a table for one statement. `check` raises if it was cancelled."""
        copy = KeyedCopy(self, self._tables, name, check)
        try:
            yield copy
        finally:
            copy.remove_rows()

    def target_of(self, definition: TableDefinition, folder: str) -> StagedTarget:
        """Return where tasks write rows."""
        return StagedTarget(
            root=self._root,
            folder=folder,
            schema=definition.schema,
            portion_bytes=min(PORTION_BYTES, self._batch_bytes_max // BATCH_SHARE),
        )

    def rows_of(self, definition: TableDefinition) -> KeyedRows:
        """Return what rows of a table must be."""
        return KeyedRows(key=definition.key, row_bytes_max=self._batch_bytes_max // ROW_SHARE)

    @contextmanager
    def turn(self, name: str, check: Callable[[], None]) -> Iterator[TableLoads]:
        """Wait until no other load of a table is appended, and finish one that was interrupted."""
        with self._changed:
            turn = self._turns.setdefault(name, threading.Lock())
        while not turn.acquire(timeout=TURN_S):
            check()
        try:
            loads = self._tables.loads(name)
            pending = loads.pending()
            if pending is not None:
                self.append(name, loads, pending)
            yield loads
        finally:
            turn.release()

    def begin(
        self,
        definition: TableDefinition,
        loads: TableLoads,
        change: LoadChange,
    ) -> Token:
        """Begin a load, and append it. Returns the token of its rows."""
        name = definition.name
        load = PendingLoad(
            load_id=change.commit_id,
            table_id=definition.table_id,
            after=loads.last_load(),
            time_ms=self._clock.wall_ms(),
            staged=tuple(file.path for file in change.files),
            last_portions={},
            entries=tuple(change.entries),
        )
        if not change.files:
            loads.record(load.entries, load.load_id, load.time_ms)
            return {}
        known = None if change.is_forced else set(loads.ledger()["commit_id"].to_pylist())
        last = self._tables.check_load(
            name, lambda: loads.portions(load), known, self._batch_bytes_max
        )
        load = msgspec.structs.replace(load, last_portions=last)
        try:
            loads.begin(load)
            return self.append(name, loads, load)
        except Unknown:
            raise  # the table was dropped
        except (FrazilError, OSError) as error:
            if loads.pending() is None:
                raise
            self._interrupt(name)
            raise Unresolved(
                f"the load of {name} has begun, and was interrupted: {error}. It goes on by "
                f"itself; its files are in copy_history when all rows are in the table"
            ) from error

    def append(self, name: str, loads: TableLoads, load: PendingLoad) -> Token:
        """Finish a load that has begun. Returns the token of its rows."""
        loads.check(load)
        try:
            token = self._tables.append_load(
                name, load, check=self._check_open, pause=self._pause_of()
            )
        except Conflict:
            loads.give_up(load)
            raise
        loads.finish(load)
        return token

    def wait(self, name: str, token: Token) -> None:
        """Wait until queries see the rows of a load, if that does not take long."""
        with suppress(FrazilError):  # the rows are durable, and become visible
            self._tables.wait(name, token, VISIBLE_S)

    def _pause_of(self) -> Callable[[Overloaded, int], None]:
        end_ns = 0

        def pause(error: Overloaded, attempt: int) -> None:
            nonlocal end_ns
            if attempt == 0:
                end_ns = self._clock.monotonic_ns() + int(FULL_S * 1000) * NS_PER_MS
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing, error.retry_after_ms / 1000)
            self._check_open()
            if self._clock.monotonic_ns() > end_ns:
                raise error

        return pause

    def _recover(self, name: str) -> None:
        """Remove rows of loads that never began, and note one that has to go on."""
        try:
            loads = self._tables.loads(name)
            loads.clean()
            if loads.pending() is not None:
                self._interrupted.add(name)
        except (FrazilError, OSError) as error:
            logger.error("loads of a table not read", extra={"table": name, "reason": str(error)})

    def _interrupt(self, name: str) -> None:
        with self._changed:
            self._interrupted.add(name)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._interrupted or self._is_closing)
                if self._is_closing:
                    return
                names = sorted(self._interrupted)
            for name in names:
                if self._go_on(name):
                    with self._changed:
                        self._interrupted.discard(name)
            with self._changed:
                if self._interrupted:
                    self._changed.wait_for(lambda: self._is_closing, RETRY_S)

    def _go_on(self, name: str) -> bool:
        """Finish an interrupted load. Returns whether there is nothing left to do."""
        try:
            with self.turn(name, self._check_open):
                logger.info("an interrupted load is finished", extra={"table": name})
        except Conflict as error:
            logger.warning("a load is given up", extra={"table": name, "reason": str(error)})
        except Exception as error:  # top of loop: it is tried again
            logger.warning(
                "an interrupted load waits",
                extra={"table": name, "reason": str(error)},
                exc_info=None if isinstance(error, FrazilError | OSError) else error,
            )
            return not self.has(name)
        return True

    def _check_open(self) -> None:
        if self._is_closing:
            raise Unavailable("the node is stopping; a load that has begun goes on afterwards")


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise Overloaded("the disk is full: nothing was loaded; free disk space") from error
        raise Unavailable(f"files of the load cannot be written: {error}") from error


class KeyedCopy:
    """Loads one keyed table for one statement. Owned by its thread."""

    def __init__(
        self, loads: KeyedLoads, tables: KeyedTables, name: str, check: Callable[[], None]
    ) -> None:
        self._loads = loads
        self._tables = tables
        self._name = name
        self._check = check
        self._folders: list[str] = []

    def plan(self, statement: CopyIntoTable, load_id: str) -> KeyedTarget:
        """Plan an attempt."""
        definition = self._loads.check(statement)
        return KeyedTarget(self, definition, load_id, self._loads.ledger(self._name))

    def staged(self, definition: TableDefinition, load_id: str) -> StagedTarget:
        """Return where the tasks of an attempt write rows, which are removed in the end."""
        self._folders.append(load_id)
        with _storage_errors():
            folder = self._tables.loads(self._name).make_folder(load_id)
        return self._loads.target_of(definition, folder)

    def rows_of(self, definition: TableDefinition) -> KeyedRows:
        return self._loads.rows_of(definition)

    def commit(self, definition: TableDefinition, change: LoadChange) -> None:
        """Append all rows. `LoadConflict` if another load had one of the files."""
        with _storage_errors(), self._loads.turn(self._name, self._check) as loads:
            self._check()
            if self._tables.definition(self._name).table_id != definition.table_id:
                raise Conflict(f"table {self._name} was dropped and created again during the load")
            known = set() if change.is_forced else loaded_keys(loads.ledger())
            for entry in change.entries:
                if entry.status == LOADED and (entry.uri, entry.etag) in known:
                    raise LoadConflict(f"{entry.uri} was loaded meanwhile")
            token = self._loads.begin(definition, loads, change)
        self._loads.wait(self._name, token)

    def remove_rows(self) -> None:
        """Remove what attempts have left."""
        # The table may be dropped, with everything; what else is left, the next start removes.
        with suppress(FrazilError, OSError):
            loads = self._tables.loads(self._name)
            for load_id in self._folders:
                loads.remove_rows(load_id)


class KeyedTarget:
    """A `CopyTarget`: one attempt to load a keyed table."""

    is_new = False

    def __init__(
        self, copy: KeyedCopy, definition: TableDefinition, load_id: str, ledger: pa.Table
    ) -> None:
        self.ledger = ledger
        self.schema = definition.schema
        self.keyed = copy.rows_of(definition)
        self._copy = copy
        self._definition = definition
        self._load_id = load_id
        self._staged: StagedTarget | None = None

    def _target(self) -> StagedTarget:
        if self._staged is None:
            self._staged = self._copy.staged(self._definition, self._load_id)
        return self._staged

    def writer(self) -> OpenWriter:
        return self._target().writer

    def rows(self, files: Sequence[LoadedFile]) -> OpenRows:
        return partial(staged_rows, self._target(), tuple(files))

    def commit(self, change: LoadChange) -> None:
        assert change.commit_id == self._load_id
        self._copy.commit(self._definition, change)

    def discard(self, files: Sequence[LoadedFile]) -> None:
        """Nothing: the rows of all attempts are removed when the statement has ended."""
