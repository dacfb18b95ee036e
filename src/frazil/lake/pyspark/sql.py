"""Questions on Spark: SQL over hot and lake as one, for those that are too large for one process.

1. read     Spark's own parser says what the text is: anything but a query is refused
2. pin      one snapshot of each table, and the offsets behind it up to what is durable now
3. join     views of the tables' names: rows of the snapshot, and from the log those behind it
4. plan     Spark analyses the query; functions that reach out of the data are refused
5. run      in a group of jobs that can be cancelled, with a limit of time and of rows
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.errors import Malformed, TooLarge, Unavailable
from frazil.lake.append.commit import next_offsets
from frazil.lake.config import LakeConfig
from frazil.lake.pyspark.source_options import nested
from frazil.lake.pyspark.user_session import register
from frazil.lake.read.offset_range import OffsetRangeReader, ReadOnlyLake
from frazil.model import Signal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from frazil.lake.lake import Lake

POOL = "questions"
"""Beside the rounds of the appender, and not behind them."""
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
"""What a query can be made of, as Spark's parser gives it. All that writes, sets or runs something
is made of something else."""
REACHING = ("CallMethodViaReflection", "TryReflect", "ScriptTransformation", "PythonUDF")
"""What would reach out of the data, wherever it stands in a plan."""


def whole(
    spark: SparkSession, table: str, data: str | Path, config: LakeConfig | None = None
) -> DataFrame:
    """All rows of a table up to now, each once: those of the lake as it is now, and behind them
    those of the log. A data frame of one moment; ask again for the next one."""
    config, folder = config or LakeConfig(), Path(data).absolute()
    history = OffsetRangeReader(str(folder), table, config)
    with ReadOnlyLake(str(folder), config) as lake:
        found = lake.table(table)
        snapshot = None if found is None else found.current_snapshot()
        held = {} if found is None else next_offsets(found)
    end = history.end()
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


def ask(lake: Lake, text: str, *, timeout_ms: int, rows_max: int) -> pa.Table:
    """The answer to one query, of at most `rows_max` rows and one more.

    `Malformed` when it is no query, or cannot be planned; `TooLarge` when it takes too long;
    `Unavailable` when Spark ends.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, PySparkException

    spark = lake.run(lake.session.spark).newSession()
    is_late = threading.Event()
    try:
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        names = check_query(spark, text)
        register(spark, lake.data_folder, lake.config)
        for table in names & {signal.table for signal in Signal}:
            whole(spark, table, lake.data_folder, lake.config).createOrReplaceTempView(table)
        frame = spark.sql(text)
        check_plan(frame)
        with limited(spark, timeout_ms) as is_late:
            return frame.limit(rows_max + 1).toArrow()
    except AnalysisException as error:
        raise Malformed(f"the query cannot be planned: {error}") from None
    except (PySparkException, Py4JError, OSError, EOFError) as error:
        if is_late.is_set():
            raise TooLarge(
                f"the query took longer than {timeout_ms} ms; ask for less, or allow more with "
                "lake.question_timeout_ms"
            ) from None
        if isinstance(error, PySparkException):
            raise Malformed(f"the query failed: {error}") from None
        raise Unavailable(f"Spark could not answer: {error}") from error


def check_query(spark: SparkSession, text: str) -> set[str]:
    """Is this text one query, or the question how Spark would run one? Gives the tables that it
    names in one word."""
    names = set()
    state = spark._jsparkSession.sessionState()  # noqa: SLF001
    plan = state.sqlParser().parsePlan(text)
    if plan.getClass().getSimpleName() == "ExplainCommand":
        plan = plan.logicalPlan()
    for node in _nodes(plan):
        kind = str(node.getClass().getName()).rstrip("$")
        if kind not in QUERY_NODES:
            raise Malformed(
                f"only queries are answered here, and {kind.rpartition('.')[2]} is "
                "something else; ask with SELECT or WITH, or put EXPLAIN in front"
            )
        if kind.endswith(".UnresolvedRelation"):
            names.add(str(node.multipartIdentifier().mkString(".")).lower())
    return names


def _nodes(plan: Any) -> Iterator[Any]:
    """A plan and all that is below it. What stands in expressions can only be a query."""
    yield plan
    for below in (plan.children(), plan.innerChildren()):
        for number in range(below.size()):
            node = below.apply(number)
            if hasattr(node, "children"):
                yield from _nodes(node)


def check_plan(frame: DataFrame) -> None:
    """Does the analysed query stay within the data?"""
    plan = str(frame._jdf.queryExecution().analyzed().toJSON())  # noqa: SLF001
    for kind in REACHING:
        if f".{kind}" in plan:
            raise Malformed(f"a query may not reach out of the data, as {kind} does")


@contextmanager
def limited(spark: SparkSession, timeout_ms: int) -> Iterator[threading.Event]:
    """Jobs that are begun in here, in this thread, are cancelled when they take too long; then the
    event is set."""
    context = spark.sparkContext
    group = f"question-{threading.get_ident()}"
    is_late = threading.Event()

    def cancel() -> None:
        is_late.set()
        context.cancelJobGroup(group)

    timer = threading.Timer(timeout_ms / 1000, cancel)
    context.setJobGroup(group, "a question", interruptOnCancel=True)
    context.setLocalProperty("spark.scheduler.pool", POOL)
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()
        timer.join()
