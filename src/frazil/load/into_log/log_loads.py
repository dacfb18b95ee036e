"""LogLoads: COPY INTO logs, spans and metrics.

1. finish   a load that a crash or a cancel has cut
2. list     the files of the stage, without those in the ledger
3. stage    read, map and check them, in tasks; nothing is in the log yet
4. note     what was staged, in `load.ckpt`
5. append   the requests in order, each step with its position; waits while the log is full. From
            the first step on, every row will be in the log
6. finish   note the files in the ledger, and remove the staged requests

The log compares each step with the position before it. So whatever is killed when, the next load
into the table, or the next start of a node, goes on exactly there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import pyarrow as pa

from frazil.definitions import CopyIntoTable
from frazil.disk import RealDisk, make_directories
from frazil.errors import Conflict, Malformed, Overloaded, PositionMismatch, Unavailable
from frazil.lake import LOADS_FOLDER, LogLedger, TaskRunner
from frazil.load.copy.checks import failed_count
from frazil.load.copy.copy_into import (
    FILES,
    ROWS,
    US_PER_MS,
    LoadResult,
    entry_of,
    fresh_files,
    infer_schema,
    purge,
    selected_files,
)
from frazil.load.copy.progress import LoadProgress, TaskProgress
from frazil.load.copy.task import ErrorPolicy, FileReport, task_groups, too_many_errors
from frazil.load.into_log.log_plan import SIGNALS, LogCopyPlan, checked_copy
from frazil.load.into_log.staged_load import (
    STAGED,
    LoadPosition,
    StagedLoad,
    StagingTarget,
    check_entry_count,
    read_staged,
    staged_folder,
    staged_requests,
    steps,
    write_staged,
)
from frazil.load.into_log.staging_task import (
    FileRules,
    StagingResult,
    StagingTask,
    run_staging_task,
)
from frazil.load.stages.stage import Stage
from frazil.load.stages.staged_file import StagedFile
from frazil.log import Append, AppendResult, Record, SourcePosition, SourceStep, append_of_records
from frazil.model import Clock, Rand
from frazil.model.arrow import LOADED, SKIPPED, with_entries

logger = logging.getLogger(__name__)

SOURCE = "frazil.copy"
"""Of all loads into one topic: they run one after the other."""
EPOCH = 1
"""Never raised: a step that an earlier process has sent leads to the same position with the same
records."""
FILES_MAX = 100_000
"""New files of one load."""
POLL_S = 0.2
"""How often a load that waits looks whether it was cancelled."""


class StepLog(Protocol):
    """A log that takes the steps of copies. `Log` and `ObservedLog` implement it."""

    def append_step(self, topic: str, append: Append) -> Future[AppendResult]: ...

    def source_position(
        self, topic: str, source: str, *, partition: int = 0
    ) -> SourcePosition | None: ...


@dataclass(frozen=True, slots=True)
class LogCopyContext:
    """What one statement needs."""

    stage: Stage
    do: TaskRunner
    files_max: int
    progress: LoadProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLoadsConfig:
    """Where loads are staged, and what may be stored."""

    rules: FileRules
    reserve_bytes: int
    make_room: Callable[[], None] = field(default=lambda: None)
    """Called while the log is full, in a process where nothing else empties it."""


class LogLoads:
    """Thread-safe. Loads into one table run one after the other."""

    def __init__(
        self, disk: RealDisk, log: StepLog, config: LogLoadsConfig, *, clock: Clock, rand: Rand
    ) -> None:
        """`disk` is the data folder."""
        self._disk = disk
        self._log = log
        self._config = config
        self._clock = clock
        self._rand = rand
        self._turns = {table: threading.Lock() for table in SIGNALS}

    def check(self, statement: CopyIntoTable) -> LogCopyPlan:
        """Raise `Malformed` if a statement says what loads into the log do not have."""
        limits = self._config.rules.ingest.limits
        return checked_copy(statement, has_series_limit=limits.series_per_service_max > 0)

    def ledger(self, table: str) -> pa.Table:
        """Return the files that a table was loaded from."""
        return self._ledger(table, is_strict=False)

    def has_staged(self) -> bool:
        """Return whether there is a load to finish."""
        return any(self._staged(table) for table in SIGNALS)

    def finish(self, progress: LoadProgress) -> None:
        """Finish the loads that an earlier process has decided."""
        for table in SIGNALS:
            with self._turn(table, progress):
                self._recover(table, progress)

    def copy(self, statement: CopyIntoTable, context: LogCopyContext) -> LoadResult:
        """Run a COPY INTO. Raises as `copy_into`. If it is cut after it was decided, it will be
        finished later, and says so."""
        load = _Load(self.check(statement), context, self._config, self._clock)
        self._make_key()
        table, progress = statement.table, context.progress
        with self._turn(table, progress):
            if not statement.return_errors:
                self._recover(table, progress)
            progress.begin("listing files")
            is_strict = not (statement.force or statement.return_errors)
            load.select(self._ledger(table, is_strict=is_strict))
            if not load.files:
                return load.result()
            load_id = f"{self._rand.getrandbits(128):032x}"
            folder = staged_folder(_folder(table), load_id)
            with ExitStack() as undo:
                undo.callback(self._disk.remove_tree, folder)
                staged = load.stage(self._disk, folder, load_id)
                if staged is None:
                    return load.result()
                progress.group.check()
                write_staged(self._disk, folder, staged)
                undo.pop_all()
            self._append(staged, folder, progress)
        return load.loaded()

    def _make_key(self) -> None:
        """Make the key of hashes if there is none yet: tasks only read it."""
        from frazil.ingest import load_hash_key

        rules = self._config.rules
        if rules.redact:
            load_hash_key(self._disk, rules.ingest.redact_key_file, self._rand)

    @contextmanager
    def _turn(self, table: str, progress: LoadProgress) -> Iterator[None]:
        """Wait until no other load into the table runs."""
        turn = self._turns[table]
        while not turn.acquire(timeout=POLL_S):
            progress.step = f"waiting for another load into {table}"
            progress.group.check()
        try:
            yield
        finally:
            turn.release()

    def _staged(self, table: str) -> list[str]:
        folder = _folder(table)
        names = self._disk.list(folder)
        return [f"{folder}/{name}" for name in names if name.endswith(STAGED)]

    def _position(self, table: str) -> tuple[bytes, LoadPosition] | None:
        """Return how far the log has the last load, also as the log has it."""
        found = self._log.source_position(SIGNALS[table].topic, SOURCE)
        if found is None or found.position is None:
            return None
        return found.position, LoadPosition.decode(found.position)

    def _recover(self, table: str, progress: LoadProgress) -> None:
        """Append the rest of a load that the log has a part of; remove what was not decided, or
        never begun."""
        for folder in self._staged(table):
            staged, position = read_staged(self._disk, folder), self._position(table)
            if staged is None or position is None or position[1].id != staged.id:
                logger.info("a load that had not begun was removed", extra={"table": table})
                self._disk.remove_tree(folder)
                continue
            logger.info("a load is finished", extra={"table": table, "load": staged.id})
            self._append(staged, folder, progress)

    def _append(self, staged: StagedLoad, folder: str, progress: LoadProgress) -> None:
        """Append what is left of a load, then note its files."""
        progress.begin("appending to the log")
        with closing(TaskProgress(progress.slot(0), self._clock)) as counter:
            for count in self._appended(staged, folder, progress):
                share = count / staged.request_count
                size = sum(entry.size_bytes for entry in staged.entries)
                counter.reading(int(size * share), int(staged.row_count * share))
        ledger = self._ledger(staged.table, is_strict=False, before=staged.id)
        now_ms = self._clock.wall_ms()
        ledger = with_entries(ledger, staged.entries, commit_id=staged.id, now_ms=now_ms)
        LogLedger(self._disk, staged.table).write(ledger)
        self._disk.remove_tree(folder)

    def _appended(self, staged: StagedLoad, folder: str, progress: LoadProgress) -> Iterator[int]:
        """Append steps until all requests are in the log. Yields how many are."""
        topic, total = SIGNALS[staged.table].topic, staged.request_count
        while True:
            found = self._position(staged.table)
            expected = None if found is None else found[0]
            count = found[1].request_count if found is not None and found[1].id == staged.id else 0
            try:
                for bodies in steps(staged_requests(self._disk, folder, staged, count)):
                    check = partial(self._check_cancelled, progress, staged, folder, count)
                    check()
                    count += len(bodies)
                    position = LoadPosition(staged.id, count, total).encode()
                    step = SourceStep(SOURCE, EPOCH, expected, position)
                    self._append_step(topic, bodies, step, progress, check)
                    expected = position
                    yield count
                return
            except PositionMismatch:
                again = self._position(staged.table)
                if again is None or again[1].id != staged.id or again[0] == expected:
                    raise
                # A step that an earlier process had sent was appended meanwhile.

    def _append_step(
        self,
        topic: str,
        bodies: list[bytes],
        step: SourceStep,
        progress: LoadProgress,
        check: Callable[[], None],
    ) -> None:
        """Append a step. While the log is full, wait; `check` may then raise."""
        now_ms = self._clock.wall_ms()
        records = [Record(offset=0, timestamp_ms=now_ms, key=None, value=body) for body in bodies]
        append = append_of_records(records, step=step)
        while True:
            try:
                self._log.append_step(topic, append).result()
                return
            except Overloaded as error:
                progress.step = f"waiting for the log: {error}"
                self._config.make_room()
                self._wait(error.retry_after_ms / 1000, progress)
                check()
                progress.step = "appending to the log"

    def _wait(self, seconds: float, progress: LoadProgress) -> None:
        while seconds > 0 and not progress.group.is_cancelled:
            self._clock.sleep(min(POLL_S, seconds))
            seconds -= POLL_S

    def _check_cancelled(
        self, progress: LoadProgress, staged: StagedLoad, folder: str, count: int
    ) -> None:
        if not progress.group.is_cancelled:
            return
        if count == 0:
            self._disk.remove_tree(folder)
            progress.group.check()
        raise Unavailable(
            f"the statement was cancelled. A part of the load is in {staged.table}; the next COPY "
            f"INTO {staged.table}, or the next start of the node, appends the rest"
        )

    def _ledger(self, table: str, *, is_strict: bool, before: str = "") -> pa.Table:
        """Return the entries of files that are in the log. `Conflict` with `is_strict` if that is
        not known. `before`: the id of the load that the log has now and the ledger need not."""
        ledger = LogLedger(self._disk, table).read()
        found = self._position(table)
        if found is None:
            return ledger.slice(0, 0)  # this log has no load: another one had
        position = found[1]
        ids: list[str] = ledger.column("commit_id").to_pylist()
        if position.id in ids:
            is_known = position.request_count == position.total
            end = len(ids) - ids[::-1].index(position.id)
            if is_known or not is_strict:
                begin = ids.index(position.id)
                return ledger.slice(0, begin if position.id == before else end)
        elif position.id == before or not is_strict:
            return ledger
        raise Conflict(
            f"the log has {position.request_count} of {position.total} requests of the load "
            f"{position.id} into {table}, but its files are not known, as in a backup that was "
            "taken while it ran: load new files by FILES=(…) with FORCE=true"
        )


class _Load:
    """One statement."""

    def __init__(
        self, copy: LogCopyPlan, context: LogCopyContext, config: LogLoadsConfig, clock: Clock
    ) -> None:
        self.files: list[StagedFile] = []
        self._copy = copy
        self._context = context
        self._config = config
        self._now_us = clock.wall_ms() * US_PER_MS
        self._known_count = 0
        self._replaced: tuple[str, ...] = ()
        self._reports: tuple[FileReport, ...] = ()

    def select(self, ledger: pa.Table) -> None:
        """Choose the files."""
        statement, context = self._copy.statement, self._context
        listed = selected_files(
            context.stage,
            statement.source.path,
            statement.pattern,
            statement.files,
            context.files_max,
        )
        self.files, self._known_count, self._replaced = fresh_files(statement, listed, ledger)
        check_entry_count(len(self.files), FILES_MAX)
        context.progress.expect(self.files)

    def stage(self, disk: RealDisk, folder: str, load_id: str) -> StagedLoad | None:
        """Read the files in tasks. Returns what to append; None if they were to be checked only."""
        statement, context = self._copy.statement, self._context
        target = None
        if not statement.return_errors:
            make_directories(disk, folder)
            target = StagingTarget(
                data=str(disk.root),
                folder=folder,
                load_id=load_id,
                reserve_bytes=self._config.reserve_bytes,
            )
        results = self._run(target, str(disk.root), load_id)
        self._reports = tuple(report for result in results for report in result.reports)
        rows = sum(report.row_count for report in self._reports)
        errors = sum(report.error_count for report in self._reports)
        if statement.max_errors is not None and errors > statement.max_errors:
            raise too_many_errors(self._policy(), self._reports)
        if target is None:
            return None
        failure = failed_count(statement.checks, rows, errors)
        if failure is not None:
            raise Malformed(f"VALIDATE failed, and nothing was loaded. {failure}")
        entries = [entry_of(report) for report in self._reports]
        if self._config.rules.redact:  # a reason may quote a value
            entries = [replace(entry, first_error=None) for entry in entries]
        context.progress.begin("staging")
        return StagedLoad(
            id=load_id,
            table=statement.table,
            files=tuple(each.file for each in results if each.file is not None),
            entries=tuple(entries),
            row_count=rows,
        )

    def _run(self, target: StagingTarget | None, data: str, load_id: str) -> list[StagingResult]:
        context, copy = self._context, self._copy
        file_format = copy.file_format(context.stage, self.files)
        rows = copy.rows(
            file_format,
            lambda: infer_schema(
                context.stage,
                self.files,
                file_format,
                context.do,
                context.progress,
                is_lenient=copy.statement.on_error != "abort",
            ),
            context.do,
            self._now_us,
        )
        is_check = target is None
        context.progress.begin("checking files" if is_check else "loading files")
        tasks = [
            StagingTask(
                stage=context.stage,
                files=group,
                file_format=file_format,
                signal=copy.signal,
                rows=rows,
                rules=self._config.rules,
                data=data,
                target=target,
                policy=self._policy(),
                name=f"{load_id[:12]}-{index:06d}",
                now_us=self._now_us,
                slot=context.progress.slot(index),
            )
            for index, group in enumerate(task_groups(self.files))
        ]
        return context.do(run_staging_task, tasks)

    def _policy(self) -> ErrorPolicy:
        statement = self._copy.statement
        return ErrorPolicy(
            on_error=statement.on_error,
            skip_file_errors=statement.skip_file_errors,
            max_errors=statement.max_errors,
        )

    def loaded(self) -> LoadResult:
        """Return the result of a load whose rows are in the log, and delete its files if it says
        so."""
        loaded = [report for report in self._reports if not report.is_skipped]
        name = self._copy.statement.table
        ROWS.add(sum(report.row_count for report in loaded), table=name)
        FILES.add(len(loaded), table=name, outcome=LOADED)
        FILES.add(len(self._reports) - len(loaded), table=name, outcome=SKIPPED)
        errors = purge(self._context.stage, loaded) if self._copy.statement.purge else ()
        return self.result(errors)

    def result(self, purge_errors: tuple[str, ...] = ()) -> LoadResult:
        return LoadResult(
            table=self._copy.statement.table,
            reports=self._reports,
            known_count=self._known_count,
            replaced=self._replaced,
            purge_errors=purge_errors,
        )


def _folder(table: str) -> str:
    return f"{LOADS_FOLDER}/{table}"
