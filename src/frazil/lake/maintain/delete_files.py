"""Taking files of a table away, by tasks. What is not there any more is as good as removed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

    from frazil.lake.spark.jobs import TaskRunner

TASK_FILES = 1_000
"""Files that one task takes away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTask:
    """The work of one task."""

    paths: Sequence[str]
    io: FileIO = field(repr=False)


def remove(paths: Sequence[str], io: FileIO, do: TaskRunner) -> int:
    """Take files away that nobody names any more. Returns how many there were."""
    parts = [paths[at : at + TASK_FILES] for at in range(0, len(paths), TASK_FILES)]
    return sum(do(_remove, [DeleteTask(paths=part, io=io) for part in parts]))


def _remove(work: DeleteTask) -> int:
    count = 0
    for path in work.paths:
        with suppress(FileNotFoundError):
            work.io.delete(path)
            count += 1
    return count
