"""Deletes files of a table, in tasks. Files that are already gone are ignored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

    from frazil.lake.spark.jobs import TaskRunner

TASK_FILES = 1_000
"""Files deleted per task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTask:
    """The input of one task."""

    paths: Sequence[str]
    io: FileIO = field(repr=False)


def delete_files(paths: Sequence[str], io: FileIO, do: TaskRunner) -> int:
    """Delete files that no snapshot references. Returns how many existed."""
    parts = [paths[at : at + TASK_FILES] for at in range(0, len(paths), TASK_FILES)]
    return sum(do(_delete, [DeleteTask(paths=part, io=io) for part in parts]))


def _delete(work: DeleteTask) -> int:
    count = 0
    for path in work.paths:
        with suppress(FileNotFoundError):
            work.io.delete(path)
            count += 1
    return count
