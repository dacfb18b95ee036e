"""SQL on Spark over log and lake combined, for queries that are too large for one process.

1. parse    with Spark's own parser; anything but a query is rejected
2. pin      one snapshot of each table, and the durable offsets after it
3. view     create a view per table: rows of the snapshot plus newer rows from the log
4. plan     Spark analyses the query; functions that access anything but the data are rejected
5. run      in a job group that can be cancelled, with a timeout and a row limit
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.errors import FrazilError, Malformed, TooLarge, Unavailable
from frazil.lake.append.commit import next_offsets
from frazil.lake.pyspark.source_options import nested
from frazil.lake.pyspark.user_session import register
from frazil.lake.read.offset_range import OffsetRangeReader, ReadOnlyLake
from frazil.model import Signal
from frazil.results import CancelToken
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from frazil.lake.lake import Lake

CHECK_S = 0.2
"""How often a query that waits for Spark checks whether it is cancelled."""
POOL = "questions"
"""Scheduler pool, so that queries do not wait for the appender."""
SETTINGS = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}
PACKAGES = (
    "org.apache.spark.sql.catalyst.plans.logical.",
    "org.apache.spark.sql.catalyst.analysis.",
)
QUERY_TEXT = """
    Aggregate AsOfJoin Deduplicate Distinct Except Filter Generate GlobalLimit Intersect Join
    LateralJoin LocalLimit LocalRelation Offset OneRowRelation Pivot Project Range Repartition
    RepartitionByExpression RebalancePartitions Sample Sort SubqueryAlias Tail Union UnionLoop
    UnionLoopRef Unpivot UnresolvedHint UnresolvedWith Window WithWindowDefinition
    RelationTimeTravel UnresolvedGenerate UnresolvedHaving UnresolvedInlineTable UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction
"""
QUERY_NODES = frozenset(
    {package + name for package in PACKAGES for name in QUERY_TEXT.split()}
    | {"org.apache.spark.sql.catalyst.expressions.PipeOperator"}
)
"""Parser nodes that a query may consist of. Statements that write, set or run something have other
nodes."""
FORBIDDEN = ("CallMethodViaReflection", "TryReflect", "ScriptTransformation", "PythonUDF")
"""Plan nodes that access anything but the data."""


def whole(
    spark: SparkSession, table: str, data: str | Path, config: LakeConfig | None = None
) -> DataFrame:
    """Return all rows of a table up to now, each once: the current snapshot plus newer rows from
    the log. The data frame is fixed at this instant; call again for newer rows."""
    config, folder = config or LakeConfig(), Path(data).absolute()
    reader = OffsetRangeReader(str(folder), table, config)
    with ReadOnlyLake(str(folder), config) as lake:
        loaded = lake.table(table)
        snapshot = None if loaded is None else loaded.current_snapshot()
        held = {} if loaded is None else next_offsets(loaded)
    end = reader.end()
    rest = spark.read.format("frazil").options(
        path=str(folder), table=table, endingOffsets=json.dumps(nested(end))
    )
    if snapshot is None:
        return rest.load()
    begin = {place: min(held.get(place, 0), offset) for place, offset in end.items()}
    recent = rest.option("startingOffsets", json.dumps(nested(begin))).load()
    name = f"{config.catalog_name}.{config.namespace}.{table}"
    frozen = spark.read.option("versionAsOf", str(snapshot.snapshot_id)).table(name)
    return frozen.select(recent.columns).unionByName(recent)


def query_spark(
    lake: Lake, text: str, *, timeout_ms: int, rows_max: int, cancel_token: CancelToken
) -> pa.Table:
    """Run one query and return at most `rows_max` + 1 rows.

    Raise `Malformed` if it is not a query or cannot be planned, `TooLarge` if it takes too long,
    `Unavailable` if Spark ends, and the token's error if it is cancelled.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, PySparkException

    spark = _started(lake, cancel_token).newSession()
    job = SparkJob(spark)
    cancel_token.attach(job)
    try:
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        names = check_query(spark, text)
        register(spark, lake.data_folder, lake.config)
        for table in names & {signal.table for signal in Signal}:
            whole(spark, table, lake.data_folder, lake.config).createOrReplaceTempView(table)
        frame = spark.sql(text)
        check_plan(frame)
        cancel_token.check()
        with job.running(timeout_ms):
            return frame.limit(rows_max + 1).toArrow()
    except AnalysisException as error:
        raise Malformed(f"the query cannot be planned: {error}") from None
    except (PySparkException, Py4JError, OSError, EOFError) as error:
        if job.error is not None:
            raise job.error from None
        if isinstance(error, PySparkException):
            raise Malformed(f"the query failed: {error}") from None
        raise Unavailable(f"Spark failed: {error}") from error


def check_query(spark: SparkSession, text: str) -> set[str]:
    """Check that the text is one query, or EXPLAIN of one. Return the unqualified tables in it."""
    names = set()
    state = spark._jsparkSession.sessionState()  # noqa: SLF001
    plan = state.sqlParser().parsePlan(text)
    if plan.getClass().getSimpleName() == "ExplainCommand":
        plan = plan.logicalPlan()
    for node in _nodes(plan):
        kind = str(node.getClass().getName()).rstrip("$")
        if kind not in QUERY_NODES:
            raise Malformed(
                f"only queries are allowed, and {kind.rpartition('.')[2]} is not part of one; use "
                "SELECT or WITH, or EXPLAIN with one of them"
            )
        if kind.endswith(".UnresolvedRelation"):
            names.add(str(node.multipartIdentifier().mkString(".")).lower())
    return names


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield all nodes of a plan. Subqueries in expressions can only be queries."""
    yield plan
    for below in (plan.children(), plan.innerChildren()):
        for number in range(below.size()):
            node = below.apply(number)
            if hasattr(node, "children"):
                yield from _nodes(node)


def check_plan(frame: DataFrame) -> None:
    """Raise `Malformed` if the analysed query accesses anything but the data."""
    plan = str(frame._jdf.queryExecution().analyzed().toJSON())  # noqa: SLF001
    for kind in FORBIDDEN:
        if f".{kind}" in plan:
            raise Malformed(f"a query may access only the data; {kind} is not allowed")


def _started(lake: Lake, cancel_token: CancelToken) -> SparkSession:
    """Wait for Spark, which may have to be started, or be busy between two rounds."""
    starting = lake.submit(lake.session.spark)
    while True:
        try:
            return starting.result(CHECK_S)
        except FutureTimeout:
            try:
                cancel_token.check()
            except FrazilError:
                starting.cancel()
                raise


class SparkJob:
    """The jobs of one query. Run by one thread, cancelled from any."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._group = f"query-{threading.get_ident()}-{id(self)}"
        self.error: FrazilError | None = None
        """Why it was cancelled."""

    def cancel(self, error: FrazilError) -> None:
        self.error = self.error or error
        self._context.cancelJobGroup(self._group)

    @contextmanager
    def running(self, timeout_ms: int) -> Iterator[None]:
        """Cancel jobs started in this block by this thread after a timeout."""
        late = TooLarge(
            f"the query took longer than {timeout_ms} ms; query less, or raise "
            "lake.question_timeout_ms"
        )
        timer = threading.Timer(timeout_ms / 1000, self.cancel, [late])
        self._context.setJobGroup(self._group, "a query", interruptOnCancel=True)
        self._context.setLocalProperty("spark.scheduler.pool", POOL)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
