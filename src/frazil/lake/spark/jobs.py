"""Tasks on Spark: one job for many items. What goes over is small: slices, and descriptors."""

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
"""Of one job. Spark takes 30 ms from one task to the next, so each does several of many items; all
cores end at about the same time nevertheless."""
REASON_MAX = 2000
"""Characters of Spark's words. A trace through its inside can be much longer."""
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class TaskRunner(Protocol):
    """Does something with each of many, on Spark or in this process, and keeps their order.

    An error of ours is raised when all are done.
    """

    def __call__(
        self, function: Callable[[Item], Answer], items: Sequence[Item]
    ) -> list[Answer]: ...


def do_on(session: Session) -> TaskRunner:
    """Does it on a session's Spark, which is started if need be. The function is found by name.

    `Unavailable` when Spark dies, or gives up: what a task did not expect, or one that was killed.
    Both may be better next time.
    """

    def do(function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        from py4j.protocol import Py4JJavaError

        if not items:
            return []
        try:
            with session.use() as spark:
                context = spark.sparkContext
                count = min(len(items), TASKS_PER_CORE * context.defaultParallelism)
                tasks = context.parallelize(list(items), count)
                done = tasks.map(_answering(function)).collect()
        except Py4JJavaError as error:
            raise Unavailable(f"Spark gave up: {_reason(error)}") from error
        answers: list[Answer] = []
        for each in done:
            if isinstance(each, FrazilError):
                raise each
            answers.append(each)
        return answers

    return do


def _reason(error: Py4JJavaError) -> str:
    """What Spark says of a failed job, which ends with what Python says of the failed task."""
    text = str(error.java_exception.getMessage())
    return text if len(text) <= REASON_MAX else f"{text[:REASON_MAX]} ..."


def _answering(function: Callable[[Item], Answer]) -> Callable[[Item], Answer | FrazilError]:
    """In a task. What we know to be wrong is an answer, as trying again would not mend it."""

    def answer(item: Item) -> Answer | FrazilError:
        try:
            return function(item)
        except FrazilError as error:
            return error

    return answer


def name_of_try(name: str) -> str:
    """A task that Spark tries again writes other files."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return name if context is None else f"{name}-{context.taskAttemptId()}"


def run_on(session: Session) -> Run:
    """Does tasks of the appender on a session's Spark."""
    do = do_on(session)

    def run(work: Sequence[Work]) -> list[WrittenSlice]:
        return do(run_one, work)

    return run


def run_one(work: Work) -> WrittenSlice:
    """In a Python process of Spark's."""
    slice, target = work
    return run_slice(slice, replace(target, name=name_of_try(target.name)))
