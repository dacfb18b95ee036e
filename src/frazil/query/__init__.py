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
    promql/     PromQL, evaluated over sorted points
    logql/      LogQL over logs, for Loki's clients
    run/        planning and running in worker processes
    search/     the search box, filters, facets
    telemetry/  logs, traces, services and metrics, by SQL

Threads: any thread may start a query; its result belongs to one reader. Every text is parsed,
planned and run in a worker process, which is killed when the query takes too long or too much
memory, or when its client leaves. The process of the engine runs no query and loads no DataFusion.
"""

from frazil.query.engine import Engine
from frazil.query.load_queries import first_rows, open_row_select
from frazil.query.logql.fields import detected_fields as detected_field_list
from frazil.query.logql.labels import STREAM_LABELS, level_of
from frazil.query.logql.log_tail import LogqlTail
from frazil.query.logql.log_tail import before as records_before
from frazil.query.logql.metric_query import evaluate as evaluate_logql
from frazil.query.logql.parser import parse_logql, parse_selection
from frazil.query.logql.pipeline import LogLine
from frazil.query.logql.records import LineSpan, ReadRows, find_lines
from frazil.query.logql.render import logql_text
from frazil.query.logql.series import (
    SERIES_MAX,
    LabelKey,
    LineSeries,
    LogScalar,
    LogSteps,
    label_key,
    sample_text,
)
from frazil.query.logql.streams import (
    EVERY_STREAM,
    StreamTotals,
    exact_conditions,
    label_values,
    stream_label_names,
    stream_labels,
    stream_totals,
    volume_by_step,
)
from frazil.query.logql.syntax import LogSelection
from frazil.query.logql.units import duration_ns
from frazil.query.run.fork_client import preload_workers
from frazil.query.scan.external import ExternalSource, ListedTable
from frazil.query.scan.keyed_tables import KeyedViews, refuse_bare_names
from frazil.query.search.cursor import Cursor
from frazil.query.search.facets import Facet, FacetsAnswer, facets_of
from frazil.query.search.fields import NamedField, ambiguity_notes, fields_of
from frazil.query.search.filters import Ask, Filters, TimeRange, row_conditions
from frazil.query.search.hints import Hints, hints_of
from frazil.query.search.render import search_sql
from frazil.query.search.to_sql import query_conditions, query_names
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
from frazil.query.telemetry.traces import Order as TraceOrder
from frazil.query.telemetry.traces import (
    SpanFilter,
    SpanNode,
    Trace,
    TraceFilter,
    TraceSummary,
    find_traces,
    find_traces_by_id,
    subtree,
    trace,
)
from frazil.query.telemetry.traces import conditions_of as span_conditions
from frazil.query.telemetry.volume import Volume, volumes
from frazil.query.telemetry.waterfall import Line, waterfall
from frazil.query.view_statements import register_views
from frazil.query.warm_up import warm

__all__ = [
    "EVERY_STREAM",
    "LOG_COLUMNS",
    "SERIES_MAX",
    "STREAM_LABELS",
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
    "KeyedStore",
    "KeyedViews",
    "Label",
    "LabelKey",
    "Latency",
    "Line",
    "LineSeries",
    "LineSpan",
    "ListedTable",
    "LogFilter",
    "LogLine",
    "LogPattern",
    "LogRow",
    "LogScalar",
    "LogSelection",
    "LogSteps",
    "LogqlTail",
    "Metric",
    "NamedField",
    "Outline",
    "Pages",
    "PatternsAnswer",
    "ReadRows",
    "Selection",
    "Series",
    "SeriesAnswer",
    "Service",
    "ServiceStep",
    "SpanFilter",
    "SpanNode",
    "StreamTotals",
    "Tail",
    "TailRows",
    "TimeRange",
    "Trace",
    "TraceDot",
    "TraceFilter",
    "TraceOrder",
    "TraceSummary",
    "Volume",
    "ambiguity_notes",
    "cluster_lines",
    "compare",
    "dependencies",
    "deployments",
    "detected_field_list",
    "duration_ns",
    "evaluate_logql",
    "exact_conditions",
    "exemplars",
    "facets",
    "facets_of",
    "failures",
    "fields_of",
    "find_in_trace",
    "find_lines",
    "find_logs",
    "find_traces",
    "find_traces_by_id",
    "first_rows",
    "hints_of",
    "histogram",
    "label_key",
    "label_values",
    "latencies",
    "latency_heatmap",
    "level_of",
    "log_conditions",
    "log_pages",
    "log_patterns",
    "log_rows",
    "logql_text",
    "logs_around",
    "logs_of_trace",
    "masked_lines",
    "metric_heatmap",
    "metric_labels",
    "metric_names",
    "metric_series",
    "open_row_select",
    "outline",
    "parse_logql",
    "parse_selection",
    "preload_workers",
    "query_conditions",
    "query_names",
    "records_before",
    "refuse_bare_names",
    "register_tables",
    "register_views",
    "row_conditions",
    "sample_text",
    "search_sql",
    "service_steps",
    "services",
    "span_conditions",
    "span_of_trace",
    "stream_label_names",
    "stream_labels",
    "stream_totals",
    "subtree",
    "trace",
    "trace_dots",
    "volume_by_step",
    "volumes",
    "warm",
    "waterfall",
]
