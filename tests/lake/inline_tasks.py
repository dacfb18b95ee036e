"""Runs appender tasks in the process of the test, without Spark."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.lake.append.appender import Work
from frazil.lake.append.task import WrittenSlice, run_slice


def run_inline(work: Sequence[Work]) -> list[WrittenSlice]:
    return [run_slice(*task) for task in work]
