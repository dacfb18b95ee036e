"""Tasks of a load, in Python workers of Spark: infer the schema of files, or load them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa

from frazil.definitions import FileFormat, OnError
from frazil.errors import Malformed, TooLarge
from frazil.lake import LoadedFile, attempt_name
from frazil.load.copy.columns import MIXED
from frazil.load.copy.progress import ProgressSlot, TaskProgress, WatchedStore
from frazil.load.copy.row_checks import KeyedRows, checked
from frazil.load.copy.target import OpenWriter, RowWriter
from frazil.load.copy.transform import Transform, transformed, without_rows
from frazil.load.formats.blocks import Block, RowError, row_error
from frazil.load.formats.reader import infer_file, read_file
from frazil.load.formats.type_merge import merge_schemas
from frazil.load.stages.stage import FileSource, Stage
from frazil.load.stages.staged_file import StagedFile
from frazil.model import MiB, SystemClock

ERRORS_KEPT = 100
"""Errors of a file that are reported; all are counted."""
TASK_BYTES = 64 * MiB
"""Files of one task, unless one is larger."""
TASK_FILES = 500
TASKS_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPolicy:
    """What to do about rows and files that cannot be loaded."""

    on_error: OnError = "abort"
    skip_file_errors: int = 1
    max_errors: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What became of one file."""

    file: StagedFile
    row_count: int = 0
    """Rows loaded."""
    error_count: int = 0
    errors: tuple[RowError, ...] = ()
    """The first ones."""
    is_skipped: bool = False
    """Whether nothing of it was loaded, because of errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferTask:
    """Files whose schemas are merged."""

    stage: Stage
    files: tuple[StagedFile, ...]
    file_format: FileFormat
    slot: ProgressSlot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTask:
    """Files to load."""

    stage: Stage
    files: tuple[StagedFile, ...]
    file_format: FileFormat
    schema: pa.Schema
    is_exact: bool
    """Whether the schema was inferred from these files."""
    policy: ErrorPolicy
    writer: OpenWriter | None
    """What writes rows; None to only check the files."""
    name: str
    """Prefix of the files that are written, unique per task."""
    keyed: KeyedRows | None = None
    """What rows must be for a keyed table."""
    transform: Transform | None = None
    """What is done with the rows of a file before they are rows of the table."""
    slot: ProgressSlot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTaskResult:
    """Durable data files with the rows of the files that were not skipped."""

    reports: tuple[FileReport, ...]
    files: tuple[LoadedFile, ...] = ()


class RowPart(Protocol):
    """Some rows of a file, in the form in which they are written."""

    @property
    def row_count(self) -> int: ...
    @property
    def errors(self) -> tuple[RowError, ...]: ...


Part = TypeVar("Part", bound=RowPart, contravariant=True)
Read = TypeVar("Read", bound=RowPart)


class PartWriter(Protocol[Part]):
    """Writes the rows of one file after the other."""

    def write(self, part: Part) -> None: ...

    def end_file(self) -> None: ...

    def drop_file(self) -> None:
        """Remove what was written of the current file."""


class BlockWriter:
    """Writes blocks to data files."""

    def __init__(self, writer: RowWriter) -> None:
        self._writer = writer

    def write(self, part: Block) -> None:
        self._writer.write(part.rows)

    def end_file(self) -> None:
        self._writer.end_file()

    def drop_file(self) -> None:
        self._writer.drop_file()


def task_groups(files: Sequence[StagedFile]) -> list[tuple[StagedFile, ...]]:
    """Split files into tasks, in order."""
    total = sum(file.size_bytes for file in files)
    bytes_max = max(TASK_BYTES, -(-total // TASKS_MAX))
    groups: list[list[StagedFile]] = []
    size = 0
    for file in files:
        is_full = groups and (size + file.size_bytes > bytes_max or len(groups[-1]) >= TASK_FILES)
        if not groups or is_full:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.size_bytes
    return [tuple(group) for group in groups]


def run_infer_task(task: InferTask) -> pa.Schema:
    """Return the merged schema of files, before `finished`."""
    return _merged_schema(task, is_lenient=False)


def run_readable_task(task: InferTask) -> pa.Schema:
    """Like `run_infer_task`, without files that cannot be read: those are errors of the load."""
    return _merged_schema(task, is_lenient=True)


def _merged_schema(task: InferTask, *, is_lenient: bool) -> pa.Schema:
    store = task.stage.open()
    schemas = []
    with closing(TaskProgress(task.slot, SystemClock())) as progress:
        for file in task.files:
            try:
                schemas.append(infer_file(store, file, task.file_format))
            except (Malformed, TooLarge) as error:
                if not is_lenient:
                    raise Malformed(f"{file.uri}: {error}") from error
            progress.finished(file, 0)
    return merge_schemas(schemas, MIXED.get(task.file_format.type))


def run_copy_task(task: CopyTask) -> CopyTaskResult:
    """Load files. If this fails, no rows are left.

    Raises `Malformed` for the first error if the statement is to abort, and `Conflict` for a file
    that was changed after it was listed.
    """
    store = WatchedStore(task.stage.open())
    read = _reader(task, store)
    with ExitStack() as undo:
        writer = None
        if task.writer is not None:
            writer = task.writer(attempt_name(task.name))
            undo.callback(writer.discard)
        target = None if writer is None else BlockWriter(writer)
        reports = load_files(task.files, read, target, store, task.policy, task.slot)
        files = () if writer is None else writer.finish()
        undo.pop_all()
    return CopyTaskResult(reports=reports, files=files)


def load_files(
    files: Iterable[StagedFile],
    read: Callable[[StagedFile], Iterator[Read]],
    writer: PartWriter[Read] | None,
    store: WatchedStore,
    policy: ErrorPolicy,
    slot: ProgressSlot | None,
) -> tuple[FileReport, ...]:
    """Read files and write their rows; without a writer, only check them. Raises as
    `run_copy_task`."""
    reports: list[FileReport] = []
    with closing(TaskProgress(slot, SystemClock())) as progress:
        errors_left = policy.max_errors
        for file in files:
            parts = _counted(partial(read, file), store, progress)
            report = _load_file(file, parts, writer, policy)
            reports.append(report)
            progress.finished(file, report.row_count)
            if errors_left is not None:
                errors_left -= report.error_count
                if errors_left < 0:
                    raise too_many_errors(policy, reports)
    return tuple(reports)


def _reader(task: CopyTask, store: FileSource) -> Callable[[StagedFile], Iterator[Block]]:
    """Return what yields the rows to load of a file."""
    read = row_reader(task.file_format, task.schema, task.transform, store, task.is_exact)
    return lambda file: checked(read(file), task.schema, task.keyed)


def row_reader(
    file_format: FileFormat,
    schema: pa.Schema,
    transform: Transform | None,
    store: FileSource,
    is_exact: bool,
) -> Callable[[StagedFile], Iterator[Block]]:
    """Return what yields the rows of a file, as they are or as the SELECT makes them."""
    if transform is None:
        return lambda file: read_file(store, file, file_format, schema, is_exact=is_exact)
    staged = transform.schema
    if not staged.names:
        return lambda file: without_rows(read_file(store, file, file_format, schema))
    select = transform.open()
    return lambda file: transformed(
        read_file(store, file, file_format, staged, is_exact=transform.is_exact), select, schema
    )


def _load_file(
    file: StagedFile,
    parts: Iterator[Read],
    writer: PartWriter[Read] | None,
    policy: ErrorPolicy,
) -> FileReport:
    is_checked = writer is None
    rows = count = 0
    kept: list[RowError] = []
    is_skipped = False
    try:
        for part in parts:
            count += len(part.errors)
            kept += part.errors[: ERRORS_KEPT - len(kept)]
            rows += part.row_count
            if count and not is_checked:
                if policy.on_error == "abort":
                    raise _aborted(file, kept[0])
                if policy.on_error == "skip_file" and count >= policy.skip_file_errors:
                    is_skipped = True
                    break
            if writer is not None:
                writer.write(part)
    except (Malformed, TooLarge) as error:
        if isinstance(error, _Aborted):
            raise Malformed(str(error)) from None
        failure = row_error(0, "", f"the file cannot be loaded: {error}")
        if policy.on_error == "abort" and not is_checked:
            raise Malformed(f"{file.uri}: {failure.reason}") from error
        count, is_skipped = count + 1, True
        kept.insert(0, failure)
    if writer is not None:
        writer.drop_file() if is_skipped else writer.end_file()
    return FileReport(
        file=file,
        row_count=0 if is_skipped else rows,
        error_count=count,
        errors=tuple(kept),
        is_skipped=is_skipped,
    )


def _counted(
    read: Callable[[], Iterator[Read]], store: WatchedStore, progress: TaskProgress
) -> Iterator[Read]:
    rows = 0
    for part in read():
        rows += part.row_count
        progress.reading(store.position(), rows)
        yield part


class _Aborted(Malformed):
    """The first error of a load that is to abort."""


def _aborted(file: StagedFile, error: RowError) -> _Aborted:
    column = f", column {error.column}" if error.column else ""
    return _Aborted(
        f"{file.uri}, line {error.line}{column}: {error.reason}. Nothing was loaded; ON_ERROR="
        "CONTINUE loads the other rows, ON_ERROR=SKIP_FILE the other files"
    )


def too_many_errors(policy: ErrorPolicy, reports: Iterable[FileReport]) -> Malformed:
    """Return the error of a load with more than MAX_ERRORS errors."""
    first = next(report for report in reports if report.error_count)
    error = first.errors[0]
    return Malformed(
        f"there are more than {policy.max_errors} errors, which is MAX_ERRORS: nothing was loaded. "
        f"The first is in {first.file.uri}, line {error.line}: {error.reason}"
    )
