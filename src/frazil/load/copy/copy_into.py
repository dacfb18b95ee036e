"""COPY INTO a table.

1. list     the files of the stage, without those in the table's ledger
2. infer    the columns of a new table, new columns, or what a SELECT reads, in tasks
3. write    rows, in tasks; each reads the bytes that were listed, and runs the SELECT
4. check    the conditions of VALIDATE, in a task that reads what was written
5. commit   rows and ledger; if another load came first, go to 1

Into a table of the lake, rows are data files, and the commit is one swap with the ledger. Into a
keyed table, they are staged in local files, and the commit is a load that the log finishes
(`keyed_target`). A file is in the ledger exactly if its rows are in the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import re2

from frazil.definitions import CopyIntoTable, FileFormat
from frazil.errors import Conflict, FrazilError, Malformed
from frazil.lake import (
    LoadChange,
    LoadConflict,
    LoadTable,
    PartitionBy,
    TaskRunner,
    find_table,
    plan_load,
    plan_new_table,
)
from frazil.load.copy.checks import CheckTask, failed_count, query_of, run_check_task
from frazil.load.copy.columns import MIXED, table_columns, with_declared, with_staged
from frazil.load.copy.keyed_target import KeyedCopy
from frazil.load.copy.lake_target import LakeTarget, plan_with_columns
from frazil.load.copy.progress import LoadProgress
from frazil.load.copy.target import CopyTarget
from frazil.load.copy.task import (
    CopyTask,
    CopyTaskResult,
    ErrorPolicy,
    FileReport,
    InferTask,
    run_copy_task,
    run_infer_task,
    run_readable_task,
    task_groups,
    too_many_errors,
)
from frazil.load.copy.transform import Transform, run_plan_task
from frazil.load.formats.reader import format_of
from frazil.load.formats.type_merge import finished, merge_schemas
from frazil.load.stages.stage import Stage, staged_files
from frazil.load.stages.staged_file import StagedFile
from frazil.metrics import Counter
from frazil.model import Clock, Rand
from frazil.model.arrow import LOADED, SKIPPED, LedgerEntry, loaded_keys, tried_keys
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

logger = logging.getLogger(__name__)

US_PER_MS = 1000
ATTEMPTS_MAX = 10
"""Each fails only if another load commits the same files or columns meanwhile."""

ROWS = Counter("frazil.load.rows", "Rows loaded from files of stages, by table.")
FILES = Counter("frazil.load.files", "Files of stages that were loaded or skipped, by table.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What a COPY INTO did."""

    table: str
    reports: tuple[FileReport, ...] = ()
    known_count: int = 0
    """Files that the table had already."""
    replaced: tuple[str, ...] = ()
    """Files that were loaded before with other contents, and now again."""
    purge_errors: tuple[str, ...] = ()
    snapshot_id: int | None = None
    """None if nothing was committed."""

    @property
    def row_count(self) -> int:
        return sum(report.row_count for report in self.reports)

    @property
    def error_count(self) -> int:
        return sum(report.error_count for report in self.reports)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyContext:
    """What a load needs."""

    catalog: Catalog
    lake: LakeConfig
    do: TaskRunner
    clock: Clock
    rand: Rand
    files_max: int
    progress: LoadProgress
    keyed: KeyedCopy | None = None
    """The keyed table to load into; None: a table of the lake."""
    before_tasks: Callable[[], None] = field(default=lambda: None)
    """Called after files were listed; for tests."""


def copy_into(statement: CopyIntoTable, stage: Stage, context: CopyContext) -> LoadResult:
    """Run a COPY INTO a table. `Malformed` if a file or a row cannot be loaded and the statement is
    to abort, `Conflict` if a file was changed meanwhile: nothing was loaded then."""
    if statement.mapping:
        raise Malformed("MAPPING is for COPY INTO logs; write a SELECT, as in docs/loading.md")
    reason = ""
    for _ in range(ATTEMPTS_MAX):
        load = _Load(statement, stage, context)
        context.progress.begin("listing files")
        try:
            target = load.prepare()
            if target is None:
                return load.result()
            results = load.run(target)
            if statement.return_errors:
                return load.result(results)
            load.check(target, results)
            return load.commit(target, results)
        except LoadConflict as error:
            logger.info("load planned again", extra={"reason": str(error)})
            reason = str(error)
    raise Conflict(f"{statement.table} was changed by others {ATTEMPTS_MAX} times: {reason}")


def selected_files(
    stage: Stage, path: str, pattern: str, files: Sequence[str], files_max: int
) -> list[StagedFile]:
    """Return the files that a statement names."""
    found = staged_files(stage, path, files=files, files_max=files_max)
    if not pattern:
        return found
    try:
        matches = re2.compile(pattern).fullmatch
    except re2.error as error:
        raise Malformed(f"PATTERN {pattern!r} is not a regular expression: {error}") from None
    return [file for file in found if matches(file.path)]


def lake_ledger(statement: CopyIntoTable, catalog: Catalog, lake: LakeConfig) -> pa.Table | None:
    """Return the ledger of the table that a statement loads; None if it does not exist."""
    table = find_table(catalog, lake, statement.table)
    return None if table is None else plan_load(table, pa.schema([])).ledger


def unloaded_files(
    statement: CopyIntoTable, stage: Stage, ledger: pa.Table | None, files_max: int
) -> list[StagedFile]:
    """Return the files that a statement names and that its table does not have."""
    listed = selected_files(
        stage, statement.source.path, statement.pattern, statement.files, files_max
    )
    known = set() if ledger is None else loaded_keys(ledger)
    return [file for file in listed if (file.uri, file.etag) not in known]


def fresh_files(
    statement: CopyIntoTable, listed: list[StagedFile], ledger: pa.Table | None
) -> tuple[list[StagedFile], int, tuple[str, ...]]:
    """Return the files to load, how many others the table has already, and the URIs of those that
    it has with other contents."""
    if ledger is None:
        return listed[: statement.max_files], 0, ()
    known = loaded_keys(ledger)
    uris = {uri for uri, _ in known}
    fresh = listed
    if not statement.force:
        fresh = [file for file in listed if (file.uri, file.etag) not in known]
        # Files that were skipped come last: with MAX_FILES, others get their turn.
        tried = tried_keys(ledger)
        fresh = sorted(fresh, key=lambda file: (file.uri, file.etag) in tried)
    replaced = tuple(
        file.uri for file in fresh if file.uri in uris and (file.uri, file.etag) not in known
    )
    return fresh[: statement.max_files], len(listed) - len(fresh), replaced


def infer_schema(
    stage: Stage,
    files: Sequence[StagedFile],
    file_format: FileFormat,
    do: TaskRunner,
    progress: LoadProgress | None = None,
    *,
    is_lenient: bool = False,
) -> pa.Schema:
    """Return the merged schema of all files; with `is_lenient`, of those that can be read."""
    if progress is not None:
        progress.begin("inferring columns")
    tasks = [
        InferTask(
            stage=stage,
            files=group,
            file_format=file_format,
            slot=None if progress is None else progress.slot(index),
        )
        for index, group in enumerate(task_groups(files))
    ]
    schemas = do(run_readable_task if is_lenient else run_infer_task, tasks)
    return finished(merge_schemas(schemas, MIXED.get(file_format.type)))


class _Load:
    """One attempt of a load."""

    def __init__(self, statement: CopyIntoTable, stage: Stage, context: CopyContext) -> None:
        self._statement = statement
        self._stage = stage
        self._context = context
        self._policy = ErrorPolicy(
            on_error=statement.on_error,
            skip_file_errors=statement.skip_file_errors,
            max_errors=statement.max_errors,
        )
        self._files: list[StagedFile] = []
        self._known_count = 0
        self._replaced: tuple[str, ...] = ()
        self._is_exact = False
        self._transform: Transform | None = None
        self._now_us = context.clock.wall_ms() * US_PER_MS
        self._unique = f"{context.rand.getrandbits(128):032x}"

    def prepare(self) -> CopyTarget | None:
        """List files and plan the table. None if there is nothing to load."""
        statement, context = self._statement, self._context
        table: Table | None = None
        target: CopyTarget | None = None
        if context.keyed is not None:
            target = context.keyed.plan(statement, self._unique)
        else:
            table = find_table(context.catalog, context.lake, statement.table)
        if table is not None:
            target = self._lake_target(plan_load(table, pa.schema([])))
        if target is not None and statement.partition_by:
            raise Malformed(f"{statement.table} exists; PARTITION BY is for a new table")
        listed = selected_files(
            self._stage,
            statement.source.path,
            statement.pattern,
            statement.files,
            context.files_max,
        )
        self._select(listed, None if target is None else target.ledger)
        context.progress.expect(self._files)
        if not self._files:
            return None
        context.before_tasks()
        if target is None:
            return self._lake_target(self._new_table())
        if not statement.query and not statement.add_columns:
            return target
        columns = self._inferred()
        if table is None or not statement.add_columns:
            return target
        return self._lake_target(plan_with_columns(table, columns))

    def _lake_target(self, plan: LoadTable) -> LakeTarget:
        context = self._context
        return LakeTarget(
            plan=plan, catalog=context.catalog, lake=context.lake, clock=context.clock
        )

    def _select(self, listed: list[StagedFile], ledger: pa.Table | None) -> None:
        found = fresh_files(self._statement, listed, ledger)
        self._files, self._known_count, self._replaced = found

    def file_format(self) -> FileFormat:
        chosen = self._statement.file_format or self._stage.file_format
        return chosen or format_of(self._files[0].path)

    def _inferred(self) -> pa.Schema:
        """Return the columns of the rows to load: of the files, or of the SELECT over them."""
        staged = infer_schema(
            self._stage,
            self._files,
            self.file_format(),
            self._context.do,
            self._context.progress,
            is_lenient=self._statement.on_error != "abort",
        )
        if not self._statement.query:
            return staged
        declared = self._statement.staged_columns
        self._transform = Transform(
            query=self._statement.query,
            schema=with_staged(staged, declared),
            is_exact=not declared,
            now_us=self._now_us,
        )
        if not self._transform.schema.names:
            return staged  # the files are empty
        (columns,) = self._context.do(run_plan_task, [self._transform])
        return columns

    def _new_table(self) -> LoadTable:
        statement = self._statement
        is_declared = bool(statement.columns) and all(c.type for c in statement.columns)
        is_declared = is_declared and not statement.query
        inferred = pa.schema([]) if is_declared else self._inferred()
        self._is_exact = not statement.columns
        columns = with_declared(inferred, statement.columns)
        parts = [
            PartitionBy(
                column=part.column,
                transform=f"{part.transform}[{part.argument}]" if part.argument else part.transform,
            )
            for part in statement.partition_by
        ]
        context = self._context
        return plan_new_table(
            context.catalog, context.lake, statement.table, table_columns(columns), parts
        )

    def run(self, target: CopyTarget) -> list[CopyTaskResult]:
        """Run the tasks."""
        statement, context = self._statement, self._context
        context.progress.begin("checking files" if statement.return_errors else "loading files")
        writer = None if statement.return_errors else target.writer()
        tasks = [
            CopyTask(
                stage=self._stage,
                files=group,
                file_format=self.file_format(),
                schema=target.schema,
                is_exact=self._is_exact,
                policy=self._policy,
                writer=writer,
                keyed=target.keyed,
                name=f"load-{self._unique[:12]}-{index:06d}",
                transform=self._transform,
                slot=context.progress.slot(index),
            )
            for index, group in enumerate(task_groups(self._files))
        ]
        results = context.do(run_copy_task, tasks)
        reports = [report for result in results for report in result.reports]
        count = sum(report.error_count for report in reports)
        if self._policy.max_errors is not None and count > self._policy.max_errors:
            _discard(target, results)
            raise too_many_errors(self._policy, reports)
        return results

    def check(self, target: CopyTarget, results: Sequence[CopyTaskResult]) -> None:
        """Raise `Malformed` if a condition of VALIDATE does not hold, and delete what was
        written."""
        checks = self._statement.checks
        if not checks:
            return
        self._context.progress.begin("checking rows")
        reports = [report for result in results for report in result.reports]
        rows = sum(report.row_count for report in reports)
        failure = failed_count(checks, rows, sum(report.error_count for report in reports))
        queries = tuple(check for check in checks if query_of(check))
        try:
            if failure is None and queries:
                task = CheckTask(
                    checks=queries,
                    open_rows=target.rows([file for each in results for file in each.files]),
                    now_us=self._now_us,
                )
                (failure,) = self._context.do(run_check_task, [task])
            if failure is not None:
                raise Malformed(f"VALIDATE failed, and nothing was loaded. {failure}")
        except FrazilError:
            _discard(target, results)
            raise

    def commit(self, target: CopyTarget, results: Sequence[CopyTaskResult]) -> LoadResult:
        context = self._context
        context.progress.step = "committing"
        context.progress.group.check()
        reports = [report for result in results for report in result.reports]
        if target.is_new and all(report.is_skipped for report in reports):
            return self.result(results)
        change = LoadChange(
            files=[file for result in results for file in result.files],
            entries=[entry_of(report) for report in reports],
            commit_id=self._unique,
            is_forced=self._statement.force,
        )
        try:
            snapshot_id = target.commit(change)
        except LoadConflict:
            _discard(target, results)
            raise
        loaded = [report for report in reports if not report.is_skipped]
        name = self._statement.table
        ROWS.add(sum(report.row_count for report in loaded), table=name)
        FILES.add(len(loaded), table=name, outcome=LOADED)
        FILES.add(len(reports) - len(loaded), table=name, outcome=SKIPPED)
        errors = purge(self._stage, loaded) if self._statement.purge else ()
        return self.result(results, snapshot_id=snapshot_id, purge_errors=errors)

    def result(
        self,
        results: Sequence[CopyTaskResult] = (),
        *,
        snapshot_id: int | None = None,
        purge_errors: tuple[str, ...] = (),
    ) -> LoadResult:
        return LoadResult(
            table=self._statement.table,
            reports=tuple(report for result in results for report in result.reports),
            known_count=self._known_count,
            replaced=self._replaced,
            purge_errors=purge_errors,
            snapshot_id=snapshot_id,
        )


def _discard(target: CopyTarget, results: Sequence[CopyTaskResult]) -> None:
    """Delete rows that will not be committed."""
    target.discard([file for result in results for file in result.files])


def purge(stage: Stage, loaded: Sequence[FileReport]) -> tuple[str, ...]:
    """Delete files that were loaded without errors. Returns why some could not be."""
    store, errors = stage.open(), []
    for report in loaded:
        if report.error_count == 0:
            try:
                store.delete(report.file)
            except FrazilError as error:
                errors.append(str(error))
    return tuple(errors)


def entry_of(report: FileReport) -> LedgerEntry:
    """Return what the ledger keeps of a file."""
    first = report.errors[0] if report.errors else None
    return LedgerEntry(
        uri=report.file.uri,
        etag=report.file.etag,
        size_bytes=report.file.size_bytes,
        status=SKIPPED if report.is_skipped else LOADED,
        rows=report.row_count,
        errors=report.error_count,
        first_error=None if first is None else first.reason,
        first_error_line=None if first is None else first.line,
    )
