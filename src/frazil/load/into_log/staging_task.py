"""Tasks of a load into the log: read files, make requests, stage them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from frazil.definitions import FileFormat
from frazil.disk import RealDisk
from frazil.lake import attempt_name
from frazil.load.copy.progress import ProgressSlot, WatchedStore
from frazil.load.copy.task import ErrorPolicy, FileReport, load_files, row_reader
from frazil.load.copy.transform import Transform
from frazil.load.formats.lines import line_chunks
from frazil.load.formats.reader import opened
from frazil.load.into_log.log_columns import LogColumns
from frazil.load.into_log.requests import RequestMaker, Requests
from frazil.load.into_log.staged_load import RequestWriter, StagedFileInfo, StagingTarget
from frazil.load.stages.stage import FileSource, Stage
from frazil.load.stages.staged_file import StagedFile
from frazil.model import NS_PER_MS, Signal, SystemClock, SystemRand
from frazil.settings import IngestConfig, RedactRule

NS_PER_US = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """The settings of a node that say what it may store. Without secrets: tasks get them."""

    ingest: IngestConfig
    redact: tuple[RedactRule, ...]
    request_bytes_max: int
    """A request above it cannot be appended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """How rows of files become log records."""

    schema: pa.Schema
    """Of the rows, after the SELECT."""
    is_exact: bool
    columns: LogColumns
    transform: Transform | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingTask:
    """Files to read."""

    stage: Stage
    files: tuple[StagedFile, ...]
    file_format: FileFormat
    signal: Signal
    rows: RowPlan | None
    """None for files of OTLP/JSON."""
    rules: FileRules
    data: str
    """The data folder."""
    target: StagingTarget | None
    """Where to write; None to only check the files."""
    policy: ErrorPolicy
    name: str
    now_us: int
    slot: ProgressSlot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingResult:
    """Durable requests of the files that were not skipped."""

    reports: tuple[FileReport, ...]
    file: StagedFileInfo | None = None


def run_staging_task(task: StagingTask) -> StagingResult:
    """Stage the requests of files. If this fails, no file is left. Raises as `run_copy_task`."""
    store = WatchedStore(task.stage.open())
    read = _reader(task, store)
    with ExitStack() as undo:
        writer = None
        if task.target is not None:
            writer = RequestWriter(task.target, attempt_name(task.name))
            undo.callback(writer.discard)
        reports = load_files(task.files, read, writer, store, task.policy, task.slot)
        file = None if writer is None else writer.finish()
        undo.pop_all()
    return StagingResult(reports=reports, file=file)


def _reader(task: StagingTask, store: FileSource) -> Callable[[StagedFile], Iterator[Requests]]:
    """Return what yields the requests of a file."""
    from frazil.ingest import FileIntake

    rules = task.rules
    intake = FileIntake(
        rules.ingest,
        rules.redact,
        rules.request_bytes_max,
        RealDisk(task.data),
        clock=SystemClock(),
        rand=SystemRand(),
    )
    maker = RequestMaker(task.signal, intake)
    rows = task.rows
    if rows is None:
        return lambda file: _json_requests(task, store, maker, file)
    read = row_reader(task.file_format, rows.schema, rows.transform, store, rows.is_exact)
    return lambda file: maker.of_rows(
        read(file),
        rows.columns,
        file.time_ms * NS_PER_MS,
        task.now_us * NS_PER_US,
        skips_empty=task.file_format.type == "text" and rows.transform is None,
    )


def _json_requests(
    task: StagingTask, store: FileSource, maker: RequestMaker, file: StagedFile
) -> Iterator[Requests]:
    with opened(store, file, task.file_format) as stream:
        yield from maker.of_json(line_chunks(stream))
