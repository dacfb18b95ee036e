"""DataFusion sessions: their tables, views, functions and limits.

A session reads only the tables registered in it: it has no object store, makes no table from a
path and does not spill to disk. DataFusion's own parser rejects statements that are not queries.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
from datafusion import (
    DataFrame,
    RuntimeEnvBuilder,
    SessionConfig,
    SessionContext,
    SQLOptions,
    column,
)

from frazil.model.arrow import METRICS
from frazil.query.functions.register import QueryContext, functions
from frazil.query.scan.filled import filled_frame
from frazil.query.scan.parquet_scan import parquet_frame, union
from frazil.query.scan.table_rows import LIVE, TableRows
from frazil.query.sql.entry_spans import VIEW as ENTRY_SPANS
from frazil.query.sql.entry_spans import is_entry
from frazil.query.sql.table_names import LISTING

READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)

FILTERED_ROWS = 65_536
"""DataFusion copies the live row versions of a batch: those of small ones stay in the cache."""

_COMMON = (
    "_log_partition, _offset, _row, time, time_unix_nano, ingest_time, service_name, "
    "service_namespace, service_instance_id, deployment_environment, host_name, "
    "k8s_namespace_name, k8s_pod_name, k8s_container_name, scope_name, scope_version, "
    "resource_attributes, scope_attributes, metric_name, description, unit, "
    "start_time_unix_nano, "
)
_REST = "flags, attributes, metadata, exemplars"
_VALUE = "coalesce(value_double, CAST(value_int AS DOUBLE)) AS value, value_double, value_int, "
VIEWS = {
    "gauges": ("gauge", _VALUE),
    "sums": ("sum", _VALUE + "aggregation_temporality, is_monotonic, "),
    "histograms": (
        "histogram",
        "count, sum, min, max, bucket_counts, explicit_bounds, aggregation_temporality, ",
    ),
    "exponential_histograms": (
        "exponential_histogram",
        "count, sum, min, max, scale, zero_count, zero_threshold, positive_offset, "
        "positive_bucket_counts, negative_offset, negative_bucket_counts, "
        "aggregation_temporality, ",
    ),
    "summaries": ("summary", "count, sum, quantiles, "),
}
"""View over `metrics` -> the metric type of its points, and their columns."""


def processors() -> int:
    """Return how many processors this process may use; a query has that many partitions."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_session(
    memory_bytes_max: int, context: QueryContext, partitions: int | None = None
) -> SessionContext:
    """Open a session without tables. A query has one partition per processor, or `partitions`."""
    # Sessions share no state: each has its own runtime and memory pool.
    runtime = (
        RuntimeEnvBuilder().with_disk_manager_disabled().with_greedy_memory_pool(memory_bytes_max)
    )
    session = SessionContext(_settings(partitions or processors()), runtime)
    session.deregister_object_store("file://")
    for function in functions(context):
        session.register_udf(function)
    return session


@lru_cache(maxsize=2)
def _settings(partitions: int) -> SessionConfig:
    return (
        SessionConfig()
        .with_information_schema(True)
        .with_target_partitions(partitions)
        .set("datafusion.sql_parser.map_string_types_to_utf8view", "false")
        # Read other columns of a file only for rows that pass the filter.
        .set("datafusion.execution.parquet.pushdown_filters", "true")
        .set("datafusion.execution.parquet.reorder_filters", "true")
        # This rule moves `attributes['x']` into one side of our union of tiers only, and then
        # rejects count(DISTINCT ...) because the sides have different types.
        .set("datafusion.optimizer.enable_leaf_expression_pushdown", "false")
    )


def add_table(session: SessionContext, name: str, schema: pa.Schema, rows: TableRows) -> None:
    """Register the rows of a table."""
    if not (rows.scans or rows.versions or rows.unfilled):
        _add_batches(session, name, schema, rows.batches)
        return
    columns = rows.columns or schema.names
    frames = [
        filled_frame(
            parquet_frame(
                session,
                _without(rows.lake_schema or schema, scan.unfilled),
                scan,
                f"{_host(name)}-{index}",
            ),
            schema,
            columns,
            scan.unfilled,
        )
        for index, scan in enumerate(rows.scans)
    ]
    for index, unfilled in enumerate(rows.unfilled):
        older = f"_older_{index}_{name}"
        _add_batches(session, older, unfilled.batches[0].schema, unfilled.batches)
        frames.append(filled_frame(session.table(older), schema, columns, unfilled.columns))
    if rows.batches:
        hot = f"_hot_{name}"
        _add_batches(session, hot, schema, rows.batches)
        frames.append(session.table(hot))
    if rows.versions:
        versions = f"_versions_{name}"
        _add_batches(session, versions, schema, [*_sliced(rows.versions)])
        frames.append(session.table(versions).filter(column(LIVE)))
    session.register_view(name, union(frames, columns))


def _without(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names]) if names else schema


def _sliced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for begin in range(0, batch.num_rows, FILTERED_ROWS):
            yield batch.slice(begin, FILTERED_ROWS)


def _host(name: str) -> str:
    """Return a table's name as the host of a URL, which has no underscores; unique per table."""
    return name.removeprefix("_").replace("_", "-")


def _add_batches(
    session: SessionContext, name: str, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
) -> None:
    """Register batches as a table with one partition per processor."""
    partitions: list[list[pa.RecordBatch]] = [
        [] for _ in range(min(processors(), len(batches)) or 1)
    ]
    sizes = [0] * len(partitions)
    for batch in batches:
        smallest = sizes.index(min(sizes))
        partitions[smallest].append(batch)
        sizes[smallest] += batch.num_rows
    if not batches:
        partitions = [[_empty(schema)]]
    session.register_record_batches(name, partitions)


@lru_cache(maxsize=16)
def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


def add_views(session: SessionContext) -> None:
    """Register all views: five over the session's `metrics` table, one over `spans`."""
    add_entry_spans(session)
    names = session.table("metrics").schema().names
    promoted = "".join(f', "{name}"' for name in names if name not in METRICS.names)
    for name, (kind, columns) in VIEWS.items():
        select = f"SELECT {_COMMON}{columns}{_REST}{promoted} FROM metrics"
        session.register_view(name, session.sql(f"{select} WHERE metric_type = '{kind}'"))


def add_entry_spans(session: SessionContext) -> None:
    """Register the view over the session's `spans` table, which may have some columns only."""
    session.register_view(ENTRY_SPANS, session.sql(f"SELECT * FROM spans WHERE {is_entry()}"))


def add_user_views(
    session: SessionContext, views: Iterable[tuple[str, str]]
) -> dict[str, BaseException]:
    """Register views that users have defined, bases first. Return the errors of those that cannot
    be: a text that reads none of them does not care."""
    failures: dict[str, BaseException] = {}
    for name, query in views:
        try:
            session.register_view(name, read(session, query))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 # top of loop: DataFusion's panics are no Exceptions
            failures[name] = error
    return failures


def may_name_entry_spans(text: str) -> bool:
    """Return whether a text may name the view over `spans`."""
    return ENTRY_SPANS in text.lower()


def may_name_views(text: str) -> bool:
    """Return whether a text may name a view over `metrics` or list tables."""
    lower = text.lower()
    return any(word in lower for word in (*VIEWS, *LISTING))


def read(session: SessionContext, text: str) -> DataFrame:
    """Parse and resolve a text. DataFusion rejects everything but a single query."""
    return session.sql_with_options(text, READ_ONLY)


def columns_by_table(schemas: Mapping[str, pa.Schema]) -> dict[str, list[str]]:
    """Return the columns of every table and view, for suggestions in errors."""
    names = {table: list(schema.names) for table, schema in schemas.items()}
    for view, (_, columns) in VIEWS.items():
        listed = f"{_COMMON}{columns}{_REST}".replace(_VALUE, "value, value_double, value_int, ")
        promoted = [name for name in names.get("metrics", ()) if name not in METRICS.names]
        names[view] = [*(name.strip() for name in listed.split(",")), *promoted]
    names[ENTRY_SPANS] = names["spans"]
    return names
