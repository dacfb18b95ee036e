"""Tasks on Spark: one job, one task per slice. What goes over is small: slices, and descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from frazil.errors import FrazilError, Unavailable
from frazil.lake.append import Run, Work
from frazil.lake.task import Written, run_slice

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError

    from frazil.lake.session import Session

REASON_MAX = 2000
"""Characters of Spark's words. A trace through its inside can be much longer."""


def run_on(session: Session) -> Run:
    """Does tasks on a session's Spark, which is started if need be. `Unavailable` when it dies, or
    gives up: what a task did not expect, or one that was killed. Both may be better next time."""

    def run(work: Sequence[Work]) -> list[Written]:
        from py4j.protocol import Py4JJavaError

        try:
            with session.use() as spark:
                tasks = spark.sparkContext.parallelize(list(work), len(work))
                done: list[Written | FrazilError] = tasks.map(run_one).collect()
        except Py4JJavaError as error:
            raise Unavailable(f"Spark gave up: {_reason(error)}") from error
        for each in done:
            if isinstance(each, FrazilError):
                raise each
        return [each for each in done if isinstance(each, Written)]

    return run


def _reason(error: Py4JJavaError) -> str:
    """What Spark says of a failed job, which ends with what Python says of the failed task."""
    text = str(error.java_exception.getMessage())
    return text if len(text) <= REASON_MAX else f"{text[:REASON_MAX]} ..."


def run_one(work: Work) -> Written | FrazilError:
    """In a Python process of Spark's. A task that Spark tries again writes other files.

    What we know to be wrong is an answer, as trying again would not mend it.
    """
    from pyspark import TaskContext

    slice, target = work
    context = TaskContext.get()
    assert context is not None, "this is a task"
    name = f"{target.name}-{context.taskAttemptId()}"
    try:
        return run_slice(slice, replace(target, name=name))
    except FrazilError as error:
        return error
