"""Runs functions as tasks of a Spark job. Arguments and results are small: slices, descriptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from frazil.errors import FrazilError, Unavailable
from frazil.lake.append.appender import Run, Work
from frazil.lake.append.task import WrittenSlice, run_slice

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError

    from frazil.lake.spark.session import Session

TASKS_PER_CORE = 3
"""Tasks of one job. Starting a task takes Spark 30 ms, so each runs several items; with three per
core, all cores still finish at about the same time."""
REASON_MAX = 2000
"""Characters of Spark's error message, which may have a long stack trace."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class TaskRunner(Protocol):
    """Calls a function for each item, on Spark or in this process, and keeps the order.

    A `FrazilError` of a task is raised after all tasks have finished.
    """

    def __call__(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]: ...


def do_on(session: Session) -> TaskRunner:
    """Return a runner on a session's Spark, which is started if needed. Functions are pickled by
    name.

    It raises `Unavailable` if Spark dies or the job fails, by an unexpected error or a killed task;
    both may succeed on retry.
    """

    def do(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        from py4j.protocol import Py4JJavaError

        if not items:
            return []
        try:
            with session.use() as spark:
                context = spark.sparkContext
                count = min(len(items), TASKS_PER_CORE * context.defaultParallelism)
                tasks = context.parallelize(list(items), count)
                done = tasks.map(_catching(function)).collect()
        except Py4JJavaError as error:
            raise Unavailable(f"the Spark job failed: {_reason(error)}") from error
        results: list[Result] = []
        for result in done:
            if isinstance(result, FrazilError):
                raise result
            results.append(result)
        return results

    return do


def _reason(error: Py4JJavaError) -> str:
    """Return Spark's message, which ends with the Python error of the failed task."""
    text = str(error.java_exception.getMessage())
    return text if len(text) <= REASON_MAX else f"{text[:REASON_MAX]} ..."


def _catching(function: Callable[[Item], Result]) -> Callable[[Item], Result | FrazilError]:
    """Return errors of ours as results: Spark would retry the task, which cannot help."""

    def call(item: Item) -> Result | FrazilError:
        try:
            return function(item)
        except FrazilError as error:
            return error

    return call


def attempt_name(name: str) -> str:
    """Return a file name prefix of this attempt: a task that Spark retries writes other files."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return name if context is None else f"{name}-{context.taskAttemptId()}"


def run_on(session: Session) -> Run:
    """Return a runner of the appender's tasks on a session's Spark."""
    do = do_on(session)

    def run(work: Sequence[Work]) -> list[WrittenSlice]:
        return do(run_one, work)

    return run


def run_one(work: Work) -> WrittenSlice:
    """Run one task, in a Python worker of Spark."""
    slice, target = work
    return run_slice(slice, replace(target, name=attempt_name(target.name)))
