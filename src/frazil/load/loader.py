"""Loader: carries out statements about stages, COPY INTO among them.

A load runs on the thread that asks for it, beside the rounds of the lake: its tasks are a Spark job
of their own, and its commit is a compare-and-swap.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from frazil.definitions import (
    CopyIntoStage,
    CopyIntoTable,
    CreateStage,
    Definitions,
    DescribeStage,
    Drop,
    FileFormat,
    ListStage,
    StagePath,
    StatementCall,
    StatementExecutor,
    ValidateStage,
    done,
    drop_definition,
    masked,
)
from frazil.errors import FrazilError, Malformed, Overloaded, TooLarge, Unknown
from frazil.lake import JobGroup, Lake, TaskRunner, do_on, find_table, open_catalog
from frazil.load.copy.columns import read_columns, table_columns, type_name
from frazil.load.copy.copy_into import (
    CopyContext,
    LoadResult,
    copy_into,
    infer_schema,
    lake_ledger,
    selected_files,
    unloaded_files,
)
from frazil.load.copy.keyed_target import KeyedCopy, KeyedLoads
from frazil.load.copy.progress import LoadProgress
from frazil.load.copy.task import CopyTask, ErrorPolicy, FileReport, run_copy_task, task_groups
from frazil.load.copy.unload import UnloadResult, unload
from frazil.load.formats.reader import format_of
from frazil.load.into_log.load_finisher import LoadFinisher
from frazil.load.into_log.log_loads import LogCopyContext, LogLoads
from frazil.load.into_log.log_plan import SIGNALS
from frazil.load.preview import FilePreview, preview_file
from frazil.load.stages.location import checked_path
from frazil.load.stages.stage import Stage, open_stage, upload
from frazil.load.stages.staged_file import StagedFile
from frazil.model import Clock, Rand
from frazil.results import CancelToken, Result
from frazil.settings import StagesConfig

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

LOADS_MAX = 4
"""Loads at the same time; more are refused, and those of pipes wait."""
SLOT_POLL_S = 0.5
"""How often a load that waits for its turn looks whether it was cancelled."""
LIST_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("uri", pa.string(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("modified_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
DESCRIBE_SCHEMA = pa.schema(
    [
        pa.field("column_name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
    ]
)
REPORT_SCHEMA = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("errors", pa.int64(), nullable=False),
        pa.field("line", pa.int64()),
        pa.field("column_name", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
"""One row per file with its first error; with VALIDATE and RETURN_ERRORS, one row per error."""
UNLOAD_SCHEMA = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
    ]
)


class SqlEngine(Protocol):
    """Runs queries and knows tables. `frazil.query.Engine` implements it."""

    def sql(self, text: str, *, cancel_token: CancelToken | None = None) -> Result:
        """Start a query."""

    def check_loaded_name(self, name: str) -> None:
        """Raise `Conflict` if no table with this name may be loaded from files."""


class _Cancelling:
    """Cancels the job of a load when its token is cancelled."""

    def __init__(self, group: JobGroup) -> None:
        self._group = group

    def cancel(self, reason: FrazilError) -> None:
        self._group.cancel()


class Loader:
    """Thread-safe."""

    def __init__(
        self,
        lake: Lake,
        engine: SqlEngine,
        definitions: Definitions,
        config: StagesConfig,
        connections: Mapping[str, str],
        *,
        clock: Clock,
        rand: Rand,
        log_loads: LogLoads,
        keyed: KeyedLoads | None = None,
        runner: Callable[[JobGroup], TaskRunner] | None = None,
    ) -> None:
        """`keyed` loads keyed tables. `runner` returns what runs the tasks of a job; by default,
        the lake's Spark."""
        self._lake = lake
        self._engine = engine
        self._definitions = definitions
        self._config = config
        self._connections = connections
        self._clock = clock
        self._rand = rand
        self._keyed = keyed
        self._log_loads = log_loads
        self._runner = runner or (lambda group: do_on(lake.session, group))
        self._slots = threading.BoundedSemaphore(LOADS_MAX)
        self._lock = threading.Lock()
        self._running: dict[str, LoadProgress] = {}

    def register(self, executor: StatementExecutor) -> None:
        """Carry out statements about stages."""
        executor.register(CreateStage, self._create_stage)
        executor.register(ListStage, self._list)
        executor.register(DescribeStage, self._describe)
        executor.register(ValidateStage, self._validate)
        executor.register(CopyIntoTable, self._copy)
        executor.register(CopyIntoStage, self._unload)
        executor.register_drop("stage", lambda call: drop_definition(self._definitions, call))
        executor.register_drop("table", self._drop_table)

    def stage(self, name: str) -> Stage:
        """Return a stage. `Unknown` if it is not defined, or not below a root any more."""
        found = self._definitions.find("stage", name)
        if found is None or not isinstance(found.statement, CreateStage):
            raise Unknown(f"there is no stage {name}; CREATE STAGE {name} URL='…' defines it")
        return open_stage(found.statement, self._config, self._connections)

    def check(self, statement: CopyIntoTable) -> None:
        """Raise as `copy` if there is no such stage, or if the table may not be loaded."""
        self._check_table(statement)
        self.stage(statement.source.stage)

    def _check_table(self, statement: CopyIntoTable) -> None:
        if statement.table in SIGNALS:
            self._log_loads.check(statement)
        elif keyed := self._keyed_loads(statement):
            keyed.check(statement)
        else:
            self._engine.check_loaded_name(statement.table)

    def _keyed_loads(self, statement: CopyIntoTable) -> KeyedLoads | None:
        """Return what loads the table of a statement, if it is a keyed one."""
        keyed = self._keyed
        return keyed if keyed is not None and keyed.has(statement.table) else None

    def unloaded(self, statement: CopyIntoTable) -> list[StagedFile]:
        """Return the files that a COPY INTO a table would load now."""
        stage = self.stage(statement.source.stage)
        ledger: pa.Table | None
        if statement.table in SIGNALS:
            ledger = self._log_loads.ledger(statement.table)
        elif keyed := self._keyed_loads(statement):
            ledger = keyed.ledger(statement.table)
        else:
            with closing(self._catalog()) as catalog:
                ledger = lake_ledger(statement, catalog, self._lake.config)
        return unloaded_files(statement, stage, ledger, self._config.files_max)

    @contextmanager
    def tasks(self, cancel_token: CancelToken) -> Iterator[TaskRunner]:
        """Yield what infers columns, as one of the loads. `Overloaded` if there are too many."""
        with self._job(cancel_token, "", "") as progress:
            progress.begin("inferring columns")
            yield self._runner(progress.group)

    def files(self, name: str, path: str, limit: int) -> tuple[list[StagedFile], bool]:
        """Return some files of a stage below a path, and whether there are more."""
        stage = self.stage(name)
        prefix = checked_path(path.strip("/"))
        found = (
            file
            for file in stage.open().list(prefix)
            if not prefix or file.path == prefix or file.path.startswith(f"{prefix}/")
        )
        files = list(islice(found, limit + 1))
        return files[:limit], len(files) > limit

    def preview(
        self, name: str, path: str, file_format: FileFormat | None, rows_max: int
    ) -> FilePreview:
        """Return the first rows of a file. `Unknown` if there is no such file."""
        stage = self.stage(name)
        store = stage.open()
        file = store.head(checked_path(path))
        return preview_file(store, file, file_format or stage.file_format, rows_max)

    def upload(
        self, name: str, path: str, chunks: Iterable[bytes], *, overwrite: bool
    ) -> StagedFile:
        """Write a file to a stage in a local folder, durably. `Conflict` if it exists, `TooLarge`
        above `stages.upload_bytes_max`: then nothing is written."""
        limited = _limited(chunks, self._config.upload_bytes_max)
        return upload(self.stage(name), path, limited, overwrite=overwrite)

    def running(self) -> list[LoadProgress]:
        """Return the loads that run now, DESCRIBE and VALIDATE among them, the oldest first."""
        with self._lock:
            return list(self._running.values())

    def cancel(self, load_id: str) -> LoadProgress:
        """Cancel a load: nothing is committed, unless its commit has begun. `Unknown` if it does
        not run (any more)."""
        with self._lock:
            found = self._running.get(load_id)
        if found is None:
            raise Unknown(f"there is no running load {load_id}; it may have ended")
        found.group.cancel()
        return found

    def copy(
        self,
        statement: CopyIntoTable,
        cancel_token: CancelToken | None = None,
        *,
        text: str = "",
        who: str = "",
        waits: bool = False,
    ) -> LoadResult:
        """Run a COPY INTO a table. Its text, and who sent it, are shown while it runs. If there are
        too many loads, wait with `waits`, or raise `Overloaded`."""
        self._check_table(statement)
        stage = self.stage(statement.source.stage)
        if statement.table in SIGNALS:
            with self._job(cancel_token, text, who, waits=waits) as progress:
                do, files_max = self._runner(progress.group), self._config.files_max
                context = LogCopyContext(stage=stage, do=do, files_max=files_max, progress=progress)
                return self._log_loads.copy(statement, context)
        with (
            self._job(cancel_token, text, who, waits=waits) as progress,
            closing(self._catalog()) as catalog,
            self._keyed_copy(statement, progress.group) as keyed,
        ):
            result = copy_into(
                statement,
                stage,
                CopyContext(
                    catalog=catalog,
                    lake=self._lake.config,
                    do=self._runner(progress.group),
                    clock=self._clock,
                    rand=self._rand,
                    files_max=self._config.files_max,
                    progress=progress,
                    keyed=keyed,
                ),
            )
        if result.snapshot_id is not None:
            self._lake.view.refresh([statement.table])
            self._lake.view.other_tables()
        return result

    def _keyed_copy(
        self, statement: CopyIntoTable, group: JobGroup
    ) -> AbstractContextManager[KeyedCopy | None]:
        keyed = self._keyed_loads(statement)
        return nullcontext() if keyed is None else keyed.copy(statement.table, group.check)

    def begin_finishing(self) -> LoadFinisher:
        """Finish loads into the log that an earlier process has decided, in the background."""
        return LoadFinisher(self._finish if self._log_loads.has_staged() else None)

    def _finish(self, cancel_token: CancelToken) -> None:
        with self._job(cancel_token, "finish interrupted loads", "frazil", waits=True) as progress:
            self._log_loads.finish(progress)

    def unload(
        self, statement: CopyIntoStage, cancel_token: CancelToken | None = None
    ) -> UnloadResult:
        """Run a COPY INTO a stage."""
        stage = self.stage(statement.target.stage)
        token = cancel_token or CancelToken()
        with self._engine.sql(statement.query, cancel_token=token) as result:
            return unload(statement, stage, _whole(result), result.schema, check=token.check)

    def _catalog(self) -> Catalog:
        return open_catalog(self._lake.config, self._lake.data_folder)

    @contextmanager
    def _job(
        self, cancel_token: CancelToken | None, text: str, who: str, *, waits: bool = False
    ) -> Iterator[LoadProgress]:
        """Yield the progress of a new load. If there are too many, wait, or raise `Overloaded`."""
        while not self._slots.acquire(timeout=SLOT_POLL_S if waits else 0):
            if waits:
                if cancel_token is not None:
                    cancel_token.check()
                continue
            raise Overloaded(f"{LOADS_MAX} loads are running, which is the limit; retry later")
        name = f"load-{self._rand.getrandbits(64):016x}"
        progress = LoadProgress(
            group=JobGroup(name),
            statement=masked(text),
            who=who,
            start_ms=self._clock.wall_ms(),
            folder=self._lake.data_folder / "lake" / "scratch",
        )
        with self._lock:
            self._running[name] = progress
        try:
            if cancel_token is not None:
                cancel_token.attach(_Cancelling(progress.group))
            yield progress
        finally:
            with self._lock:
                del self._running[name]
            progress.remove()
            self._slots.release()

    def _create_stage(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, CreateStage)
        open_stage(call.statement, self._config, self._connections)
        self._definitions.put(call.parsed)
        return done(f"created stage {call.statement.name}")

    def _drop_table(self, call: StatementCall) -> pa.Table:
        """Drop a table that was loaded. Its files stay, because a reader may still use them, unless
        the statement says PURGE. Clones have files of their own."""
        statement = call.statement
        assert isinstance(statement, Drop)
        with closing(self._catalog()) as catalog:
            table = find_table(catalog, self._lake.config, statement.name)
            if table is None:
                if statement.if_exists:
                    return done(f"there is no table {statement.name}")
                raise Unknown(f"there is no table {statement.name}")
            drop = catalog.purge_table if statement.purge else catalog.drop_table
            drop((self._lake.config.namespace, statement.name))
        self._lake.view.refresh()
        self._lake.view.other_tables()
        return done(f"dropped table {statement.name}")

    def _list(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, ListStage)
        path = call.statement.path
        rows = [
            {
                "path": file.path,
                "uri": file.uri,
                "etag": file.etag,
                "size_bytes": file.size_bytes,
                "modified_at": file.time_ms * 1000,
            }
            for file in selected_files(
                self.stage(path.stage),
                path.path,
                call.statement.pattern,
                (),
                self._config.files_max,
            )
        ]
        return pa.Table.from_pylist(rows, LIST_SCHEMA)

    def _describe(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, DescribeStage)
        with self._job(call.cancel_token, call.parsed.text, call.who) as progress:
            stage, files, file_format = self._selected(statement)
            progress.expect(files)
            do = self._runner(progress.group)
            schema = infer_schema(stage, files, file_format, do, progress)
        rows = [{"column_name": field.name, "type": type_name(field.type)} for field in schema]
        return pa.Table.from_pylist(rows, DESCRIBE_SCHEMA)

    def _validate(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, ValidateStage)
        with self._job(call.cancel_token, call.parsed.text, call.who) as progress:
            do = self._runner(progress.group)
            stage, files, file_format = self._selected(statement)
            progress.expect(files)
            schema = infer_schema(stage, files, file_format, do, progress, is_lenient=True)
            progress.begin("checking files")
            tasks = [
                CopyTask(
                    stage=stage,
                    files=group,
                    file_format=file_format,
                    schema=read_columns(table_columns(schema)),
                    is_exact=True,
                    policy=ErrorPolicy(on_error="continue"),
                    writer=None,
                    name="validate",
                    slot=progress.slot(index),
                )
                for index, group in enumerate(task_groups(files))
            ]
            reports = [report for result in do(run_copy_task, tasks) for report in result.reports]
        return _report_rows(reports, is_full=True)

    def _selected(
        self, statement: DescribeStage | ValidateStage
    ) -> tuple[Stage, list[StagedFile], FileFormat]:
        path: StagePath = statement.path
        stage = self.stage(path.stage)
        files = selected_files(
            stage, path.path, statement.pattern, statement.files, self._config.files_max
        )
        if not files:
            raise Malformed(f"there are no files at @{path.stage}/{path.path}")
        return stage, files, statement.file_format or stage.file_format or format_of(files[0].path)

    def _copy(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, CopyIntoTable)
        result = self.copy(call.statement, call.cancel_token, text=call.parsed.text, who=call.who)
        return _report_rows(result.reports, is_full=call.statement.return_errors)

    def _unload(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, CopyIntoStage)
        result = self.unload(call.statement, call.cancel_token)
        rows = [{"file": file.uri, "size_bytes": file.size_bytes} for file in result.files]
        return pa.Table.from_pylist(rows, UNLOAD_SCHEMA)


def _limited(chunks: Iterable[bytes], bytes_max: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > bytes_max:
            raise TooLarge(
                f"the file has more than {bytes_max} bytes, which is stages.upload_bytes_max: "
                "nothing was written; raise it, or copy the file into the folder of the stage"
            )
        yield chunk


def _whole(result: Result) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a query. `TooLarge` instead of a part of them."""
    yield from result
    if result.is_cut:
        raise TooLarge(
            f"the query has more than {result.rows_max} rows, which is query.rows_max; raise it, "
            "or unload a part at a time"
        )


def _report_rows(reports: Iterable[FileReport], *, is_full: bool) -> pa.Table:
    """Return one row per file, or with `is_full` one per error of it."""
    rows = []
    for report in reports:
        status = "skipped" if report.is_skipped else "errors" if report.error_count else "ok"
        base = {
            "file": report.file.uri,
            "status": status,
            "rows": report.row_count,
            "errors": report.error_count,
        }
        shown = report.errors if is_full else report.errors[:1]
        rows += [
            {**base, "line": e.line, "column_name": e.column or None, "reason": e.reason}
            for e in shown
        ] or [base]
    return pa.Table.from_pylist(rows, REPORT_SCHEMA)
