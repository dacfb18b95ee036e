"""query: SQL over both tiers within limits, and searches built on it.

    text -> worker: sql/, plan/ over empty tables -> scan/ rows -> prune -> worker: run/ -> rows

    engine.py   Engine: starts queries
    view_statements.py    CREATE VIEW and DROP VIEW
    table_statements.py   CREATE TABLE, INSERT, UPDATE…: statements of keyed tables
    table_definitions.py  definitions of keyed tables, from and to statements
    strict_values.py      values of statements in the types of columns
    load_queries.py       SELECT over rows that are being loaded
    warm_up.py  compiles what queries call

    sql/        the SQL text: dialect, AS OF, table names, errors
    functions/  our SQL functions
    scan/       the rows of a table, from both tiers
    plan/       from a text to a plan: what is scanned and pruned
    counts/     cached row counts by distinct values
    run/        planning and running in worker processes
    search/     the search box, filters, facets
    telemetry/  logs, traces, services and metrics, by SQL

Threads: any thread may start a query; its result belongs to one reader. Every text is parsed,
planned and run in a worker process, which is killed when the query takes too long or too much
memory, or when its client leaves. The process of the engine runs no query and loads no DataFusion.
"""

from frazil.query.engine import Engine
from frazil.query.functions.label_names import label_name
from frazil.query.load_queries import first_rows, open_row_select
from frazil.query.plan.plan import QueryColumns
from frazil.query.run.fork_client import preload_workers
from frazil.query.scan.external import ExternalSource, ListedTable
from frazil.query.scan.keyed_tables import KeyedViews, refuse_bare_names
from frazil.query.search.cursor import Cursor
from frazil.query.search.facets import Facet, FacetsAnswer, facets_of
from frazil.query.search.fields import NamedField, ambiguity_notes, fields_of
from frazil.query.search.filters import (
    EPOCH,
    MICROSECOND,
    Ask,
    Filters,
    TimeRange,
    bounded,
    row_conditions,
)
from frazil.query.search.filters import text as sql_text
from frazil.query.search.filters import texts as sql_texts
from frazil.query.search.filters import where as sql_where
from frazil.query.search.hints import Hints, hints_of
from frazil.query.search.render import search_sql
from frazil.query.search.to_sql import query_conditions, query_names
from frazil.query.table_definitions import definition_of
from frazil.query.table_statements import KeyedStore, register_tables
from frazil.query.telemetry.compare import Comparison, Selection, compare
from frazil.query.telemetry.deployments import Deployment, deployments
from frazil.query.telemetry.heatmaps import Heatmap, latency_heatmap, metric_heatmap
from frazil.query.telemetry.log_pages import Pages, log_pages
from frazil.query.telemetry.log_patterns import (
    LogPattern,
    PatternsAnswer,
    cluster_lines,
    log_patterns,
    masked_lines,
)
from frazil.query.telemetry.logs import COLUMNS as LOG_COLUMNS
from frazil.query.telemetry.logs import (
    Around,
    Bar,
    LogFilter,
    LogRow,
    facets,
    find_logs,
    histogram,
    log_rows,
    logs_around,
    logs_of_trace,
)
from frazil.query.telemetry.logs import conditions_of as log_conditions
from frazil.query.telemetry.metric_series import Series, SeriesAnswer, metric_series
from frazil.query.telemetry.metrics import (
    Exemplar,
    Label,
    Metric,
    exemplars,
    metric_labels,
    metric_names,
)
from frazil.query.telemetry.operations import operation_names, orphan_counts, service_names
from frazil.query.telemetry.services import (
    Dependency,
    Failure,
    Latency,
    Service,
    ServiceStep,
    dependencies,
    failures,
    latencies,
    service_steps,
    services,
)
from frazil.query.telemetry.tail import Tail, TailRows
from frazil.query.telemetry.trace_durations import TraceDot, trace_dots
from frazil.query.telemetry.trace_outline import Outline, find_in_trace, outline, span_of_trace
from frazil.query.telemetry.traces import SPANS_MAX as TRACE_SPANS_MAX
from frazil.query.telemetry.traces import Order as TraceOrder
from frazil.query.telemetry.traces import (
    SpanFilter,
    SpanNode,
    Trace,
    TraceFilter,
    TraceSummary,
    find_traces,
    find_traces_by_id,
    parents_of,
    spans_of_trace,
    subtree,
    summaries,
    trace,
)
from frazil.query.telemetry.traces import conditions_of as span_conditions
from frazil.query.telemetry.typed_spans import (
    JsonValue,
    TypedMap,
    TypedSpan,
    TypedValue,
    resource_spans,
    typed_spans,
)
from frazil.query.telemetry.volume import Volume, volumes
from frazil.query.telemetry.waterfall import Line, waterfall
from frazil.query.view_statements import register_views
from frazil.query.warm_up import warm

__all__ = [
    "EPOCH",
    "LOG_COLUMNS",
    "MICROSECOND",
    "TRACE_SPANS_MAX",
    "Around",
    "Ask",
    "Bar",
    "Comparison",
    "Cursor",
    "Dependency",
    "Deployment",
    "Engine",
    "Exemplar",
    "ExternalSource",
    "Facet",
    "FacetsAnswer",
    "Failure",
    "Filters",
    "Heatmap",
    "Hints",
    "JsonValue",
    "KeyedStore",
    "KeyedViews",
    "Label",
    "Latency",
    "Line",
    "ListedTable",
    "LogFilter",
    "LogPattern",
    "LogRow",
    "Metric",
    "NamedField",
    "Outline",
    "Pages",
    "PatternsAnswer",
    "QueryColumns",
    "Selection",
    "Series",
    "SeriesAnswer",
    "Service",
    "ServiceStep",
    "SpanFilter",
    "SpanNode",
    "Tail",
    "TailRows",
    "TimeRange",
    "Trace",
    "TraceDot",
    "TraceFilter",
    "TraceOrder",
    "TraceSummary",
    "TypedMap",
    "TypedSpan",
    "TypedValue",
    "Volume",
    "ambiguity_notes",
    "bounded",
    "cluster_lines",
    "compare",
    "definition_of",
    "dependencies",
    "deployments",
    "exemplars",
    "facets",
    "facets_of",
    "failures",
    "fields_of",
    "find_in_trace",
    "find_logs",
    "find_traces",
    "find_traces_by_id",
    "first_rows",
    "hints_of",
    "histogram",
    "label_name",
    "latencies",
    "latency_heatmap",
    "log_conditions",
    "log_pages",
    "log_patterns",
    "log_rows",
    "logs_around",
    "logs_of_trace",
    "masked_lines",
    "metric_heatmap",
    "metric_labels",
    "metric_names",
    "metric_series",
    "open_row_select",
    "operation_names",
    "orphan_counts",
    "outline",
    "parents_of",
    "preload_workers",
    "query_conditions",
    "query_names",
    "refuse_bare_names",
    "register_tables",
    "register_views",
    "resource_spans",
    "row_conditions",
    "search_sql",
    "service_names",
    "service_steps",
    "services",
    "span_conditions",
    "span_of_trace",
    "spans_of_trace",
    "sql_text",
    "sql_texts",
    "sql_where",
    "subtree",
    "summaries",
    "trace",
    "trace_dots",
    "typed_spans",
    "volumes",
    "warm",
    "waterfall",
]
