"""Runs functions as tasks of a Spark job. Arguments and results are small: slices, descriptors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from frazil.errors import FrazilError, Unavailable
from frazil.lake.append.appender import Run, Work
from frazil.lake.append.task import WrittenSlice, run_slice

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext

    from frazil.lake.spark.session import Session

TASKS_PER_CORE = 3
"""Tasks of one job. Starting a task takes Spark 30 ms, so each runs several items; with three per
core, all cores still finish at about the same time."""
POOL, GROUP = "spark.scheduler.pool", "spark.jobGroup.id"
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


class JobGroup:
    """Jobs that can be watched and cancelled from other threads. They share processors with other
    jobs fairly."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_cancelled = False
        self._context: SparkContext | None = None

    def cancel(self) -> None:
        """Stop the running job, and refuse further ones."""
        self.is_cancelled = True
        context = self._context
        if context is not None:
            context.cancelJobGroup(self.name)

    def progress(self) -> tuple[int, int]:
        """Return how many tasks of the running job have finished, and how many there are."""
        context = self._context
        if context is None:
            return 0, 0
        tracker = context.statusTracker()
        done = count = 0
        for job in tracker.getJobIdsForGroup(self.name):
            found = tracker.getJobInfo(job)
            for stage in () if found is None or found.status != "RUNNING" else found.stageIds:
                info = tracker.getStageInfo(stage)
                if info is not None:
                    done, count = done + info.numCompletedTasks, count + info.numTasks
        return done, count

    @contextmanager
    def running(self, context: SparkContext) -> Iterator[None]:
        """Run jobs of this thread in the group."""
        context.setJobGroup(self.name, self.name, interruptOnCancel=True)
        context.setLocalProperty(POOL, self.name)
        self._context = context
        try:
            self.check()
            yield
        finally:
            self._context = None
            context.setLocalProperty(POOL, None)  # type: ignore[arg-type]
            context.setLocalProperty(GROUP, None)  # type: ignore[arg-type]

    def check(self) -> None:
        """Raise `Unavailable` if it was cancelled."""
        if self.is_cancelled:
            raise Unavailable("the statement was cancelled: nothing was changed")


def do_on(session: Session, group: JobGroup | None = None) -> TaskRunner:
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
            with ExitStack() as stack:
                context = stack.enter_context(session.use()).sparkContext
                if group is not None:
                    stack.enter_context(group.running(context))
                count = min(len(items), TASKS_PER_CORE * context.defaultParallelism)
                tasks = context.parallelize(list(items), count)
                done = tasks.map(_catching(function)).collect()
        except Py4JJavaError as error:
            if group is not None:
                group.check()
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
