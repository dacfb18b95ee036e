"""Tasks of a freeze, run by the process that plans them or on Spark; there several are one Spark
task, because starting one takes longer than writing a few delete files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from frazil.disk import make_directories
from frazil.lake.files.object_store import FileStore, open_store
from frazil.lake.files.writer import DATA_FOLDER, WrittenFile
from frazil.lake.keyed.delete_task import DeleteResult, DeleteRowsTask, delete_rows
from frazil.lake.keyed.row_positions import RowPositions, read_row_positions
from frazil.lake.keyed.write_task import WriteRowsTask, write_rows
from frazil.lake.spark.jobs import attempt_name

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

FreezeTask = WriteRowsTask | DeleteRowsTask
FreezeResult = WrittenFile | DeleteResult

GROUP_ROWS = 4_000_000
"""Rows that one Spark task writes, or looks through for dead ones: about a second. A data file to
look through counts as a part of its rows."""
LOOK_SHARE = 10
"""How many times faster a row is looked at than written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGroup:
    """The input of one Spark task."""

    tasks: tuple[FreezeTask, ...]


def grouped(tasks: Sequence[tuple[FreezeTask, int]]) -> Iterator[TaskGroup]:
    """Yield tasks in groups. Each comes with its number of rows."""
    group: list[FreezeTask] = []
    total = 0
    for task, rows in tasks:
        weight = rows if isinstance(task, WriteRowsTask) else rows // LOOK_SHARE
        if group and total + weight > GROUP_ROWS:
            yield TaskGroup(tasks=tuple(group))
            group, total = [], 0
        group.append(task)
        total += weight
    if group:
        yield TaskGroup(tasks=tuple(group))


def run_group(group: TaskGroup) -> list[FreezeResult]:
    """Run tasks in a Python worker of Spark, as `run_tasks`."""
    return run_tasks([replace(task, name=attempt_name(task.name)) for task in group.tasks])


def run_tasks(
    tasks: Sequence[FreezeTask],
    positions_of: Callable[[str, FileIO], RowPositions] = read_row_positions,
) -> list[FreezeResult]:
    """Run tasks in this process. All files are durable on return; none is left after an error."""
    store = open_store(tasks[0].location, tasks[0].io)
    make_directories(store, DATA_FOLDER)
    results: list[FreezeResult] = []
    with ExitStack() as undo:
        for task in tasks:
            result = _run(task, positions_of)
            results.append(result)
            file = result.file if isinstance(result, DeleteResult) else result
            if file is not None:
                undo.callback(_discard, store, file.path)
        store.sync_directory(DATA_FOLDER)
        undo.pop_all()
    return results


def _run(task: FreezeTask, positions_of: Callable[[str, FileIO], RowPositions]) -> FreezeResult:
    if isinstance(task, WriteRowsTask):
        return write_rows(task)
    return delete_rows(task, positions_of)


def _discard(store: FileStore, path: str) -> None:
    # A file that cannot be deleted becomes an orphan, as after a crash.
    with suppress(OSError):
        store.unlink(path)
