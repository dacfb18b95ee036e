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
    promql/     PromQL, evaluated over sorted points
    prometheus/ the tables as series of Prometheus
    logql/      LogQL over logs, for Loki's clients
    traceql/    TraceQL: find traces, metrics of spans
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
from frazil.query.plan.plan import QueryColumns
from frazil.query.prometheus.answer_json import answer_pieces, series_count
from frazil.query.prometheus.directory import MetricDirectory
from frazil.query.prometheus.exemplars import SeriesExemplars, series_exemplars
from frazil.query.prometheus.labels import KnownLabels
from frazil.query.prometheus.names import unescaped
from frazil.query.prometheus.selectors import selector_matchers
from frazil.query.prometheus.series_listing import SeriesListing
from frazil.query.prometheus.table_points import TablePointSource
from frazil.query.promql.answer import Answer as PromqlAnswer
from frazil.query.promql.evaluate import evaluate_instant, evaluate_range, selections
from frazil.query.promql.evaluation import PromqlLimits
from frazil.query.promql.failures import FailedQuery, UnsupportedQuery
from frazil.query.promql.parser import parse as parse_promql
from frazil.query.promql.parser import prettified
from frazil.query.promql.points import LabelMatcher, LabelSet
from frazil.query.promql.syntax_json import syntax_json
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
    spans_of_trace,
    subtree,
    summaries,
    trace,
)
from frazil.query.telemetry.traces import conditions_of as span_conditions
from frazil.query.telemetry.typed_spans import (
    TypedMap,
    TypedSpan,
    TypedValue,
    resource_spans,
    typed_spans,
)
from frazil.query.telemetry.volume import Volume, volumes
from frazil.query.telemetry.waterfall import Line, waterfall
from frazil.query.traceql.compare import compare_spans
from frazil.query.traceql.metrics import span_metrics
from frazil.query.traceql.nodes import (
    CompareStage,
    FieldExpression,
    FieldLiteral,
    FieldOperation,
    SpanAttribute,
    SpanIntrinsic,
    SpansetFilter,
    SpansetPipeline,
    TraceqlQuery,
    spans_with,
)
from frazil.query.traceql.parser import parse_traceql
from frazil.query.traceql.search import (
    FoundSpan,
    FoundSpanset,
    FoundTrace,
    find_by_traceql,
    find_trace_ids,
    spans_of_traces,
)
from frazil.query.traceql.series import (
    SpanExemplar,
    StepRange,
    TraceqlSeries,
    step_range,
    whole_range,
)
from frazil.query.traceql.tags import INTRINSIC_TAGS, TagValue, tag_names, tag_of, tag_values
from frazil.query.view_statements import register_views
from frazil.query.warm_up import warm

__all__ = [
    "EVERY_STREAM",
    "INTRINSIC_TAGS",
    "LOG_COLUMNS",
    "SERIES_MAX",
    "STREAM_LABELS",
    "TRACE_SPANS_MAX",
    "Around",
    "Ask",
    "Bar",
    "CompareStage",
    "Comparison",
    "Cursor",
    "Dependency",
    "Deployment",
    "Engine",
    "Exemplar",
    "ExternalSource",
    "Facet",
    "FacetsAnswer",
    "FailedQuery",
    "Failure",
    "FieldExpression",
    "FieldLiteral",
    "FieldOperation",
    "Filters",
    "FoundSpan",
    "FoundSpanset",
    "FoundTrace",
    "Heatmap",
    "Hints",
    "KeyedStore",
    "KeyedViews",
    "KnownLabels",
    "Label",
    "LabelKey",
    "LabelMatcher",
    "LabelSet",
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
    "MetricDirectory",
    "NamedField",
    "Outline",
    "Pages",
    "PatternsAnswer",
    "PromqlAnswer",
    "PromqlLimits",
    "QueryColumns",
    "ReadRows",
    "Selection",
    "Series",
    "SeriesAnswer",
    "SeriesExemplars",
    "SeriesListing",
    "Service",
    "ServiceStep",
    "SpanAttribute",
    "SpanExemplar",
    "SpanFilter",
    "SpanIntrinsic",
    "SpanNode",
    "SpansetFilter",
    "SpansetPipeline",
    "StepRange",
    "StreamTotals",
    "TablePointSource",
    "TagValue",
    "Tail",
    "TailRows",
    "TimeRange",
    "Trace",
    "TraceDot",
    "TraceFilter",
    "TraceOrder",
    "TraceSummary",
    "TraceqlQuery",
    "TraceqlSeries",
    "TypedMap",
    "TypedSpan",
    "TypedValue",
    "UnsupportedQuery",
    "Volume",
    "ambiguity_notes",
    "answer_pieces",
    "cluster_lines",
    "compare",
    "compare_spans",
    "dependencies",
    "deployments",
    "detected_field_list",
    "duration_ns",
    "evaluate_instant",
    "evaluate_logql",
    "evaluate_range",
    "exact_conditions",
    "exemplars",
    "facets",
    "facets_of",
    "failures",
    "fields_of",
    "find_by_traceql",
    "find_in_trace",
    "find_lines",
    "find_logs",
    "find_trace_ids",
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
    "operation_names",
    "orphan_counts",
    "outline",
    "parse_logql",
    "parse_promql",
    "parse_selection",
    "parse_traceql",
    "preload_workers",
    "prettified",
    "query_conditions",
    "query_names",
    "records_before",
    "refuse_bare_names",
    "register_tables",
    "register_views",
    "resource_spans",
    "row_conditions",
    "sample_text",
    "search_sql",
    "selections",
    "selector_matchers",
    "series_count",
    "series_exemplars",
    "service_names",
    "service_steps",
    "services",
    "span_conditions",
    "span_metrics",
    "span_of_trace",
    "spans_of_trace",
    "spans_of_traces",
    "spans_with",
    "step_range",
    "stream_label_names",
    "stream_labels",
    "stream_totals",
    "subtree",
    "summaries",
    "syntax_json",
    "tag_names",
    "tag_of",
    "tag_values",
    "trace",
    "trace_dots",
    "typed_spans",
    "unescaped",
    "volume_by_step",
    "volumes",
    "warm",
    "waterfall",
    "whole_range",
]
