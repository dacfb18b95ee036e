"""languages: PromQL, LogQL and TraceQL over the tables.

    promql/      PromQL, evaluated over sorted points
    prometheus/  the tables as series of Prometheus
    logql/       LogQL over logs, for Loki's clients
    traceql/     TraceQL: find traces, metrics of spans
    warm_up.py   compiles what evaluations call

Each reads by SQL, within its limits, through a callable that it is given; what SQL cannot decide is
evaluated here, in the calling thread.
"""

from frazil.languages.logql.fields import detected_fields as detected_field_list
from frazil.languages.logql.labels import STREAM_LABELS, level_of
from frazil.languages.logql.log_tail import LogqlTail
from frazil.languages.logql.log_tail import before as records_before
from frazil.languages.logql.metric_query import evaluate as evaluate_logql
from frazil.languages.logql.parser import parse_logql, parse_selection
from frazil.languages.logql.pipeline import LogLine
from frazil.languages.logql.records import LineSpan, ReadRows, find_lines
from frazil.languages.logql.render import logql_text
from frazil.languages.logql.series import (
    SERIES_MAX,
    LabelKey,
    LineSeries,
    LogScalar,
    LogSteps,
    label_key,
    sample_text,
)
from frazil.languages.logql.streams import (
    EVERY_STREAM,
    StreamTotals,
    exact_conditions,
    label_values,
    stream_label_names,
    stream_labels,
    stream_totals,
    volume_by_step,
)
from frazil.languages.logql.syntax import LogSelection
from frazil.languages.logql.units import duration_ns
from frazil.languages.prometheus.answer_json import answer_pieces, series_count
from frazil.languages.prometheus.directory import MetricDirectory
from frazil.languages.prometheus.exemplars import SeriesExemplars, series_exemplars
from frazil.languages.prometheus.labels import KnownLabels
from frazil.languages.prometheus.names import unescaped
from frazil.languages.prometheus.selectors import selector_matchers
from frazil.languages.prometheus.series_listing import SeriesListing
from frazil.languages.prometheus.table_points import TablePointSource
from frazil.languages.promql.answer import Answer as PromqlAnswer
from frazil.languages.promql.evaluate import evaluate_instant, evaluate_range, selections
from frazil.languages.promql.evaluation import PromqlLimits
from frazil.languages.promql.failures import FailedQuery, UnsupportedQuery
from frazil.languages.promql.parser import parse as parse_promql
from frazil.languages.promql.parser import prettified
from frazil.languages.promql.points import LabelMatcher, LabelSet
from frazil.languages.promql.syntax_json import syntax_json
from frazil.languages.traceql.compare import compare_spans
from frazil.languages.traceql.metrics import span_metrics
from frazil.languages.traceql.nodes import (
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
from frazil.languages.traceql.parser import parse_traceql
from frazil.languages.traceql.search import (
    FoundSpan,
    FoundSpanset,
    FoundTrace,
    find_by_traceql,
    find_trace_ids,
    rows_of_traces,
    spans_of_traces,
)
from frazil.languages.traceql.series import (
    SpanExemplar,
    StepRange,
    TraceqlSeries,
    step_range,
    whole_range,
)
from frazil.languages.traceql.tags import INTRINSIC_TAGS, TagValue, tag_names, tag_of, tag_values
from frazil.languages.warm_up import warm

__all__ = [
    "EVERY_STREAM",
    "INTRINSIC_TAGS",
    "SERIES_MAX",
    "STREAM_LABELS",
    "CompareStage",
    "FailedQuery",
    "FieldExpression",
    "FieldLiteral",
    "FieldOperation",
    "FoundSpan",
    "FoundSpanset",
    "FoundTrace",
    "KnownLabels",
    "LabelKey",
    "LabelMatcher",
    "LabelSet",
    "LineSeries",
    "LineSpan",
    "LogLine",
    "LogScalar",
    "LogSelection",
    "LogSteps",
    "LogqlTail",
    "MetricDirectory",
    "PromqlAnswer",
    "PromqlLimits",
    "ReadRows",
    "SeriesExemplars",
    "SeriesListing",
    "SpanAttribute",
    "SpanExemplar",
    "SpanIntrinsic",
    "SpansetFilter",
    "SpansetPipeline",
    "StepRange",
    "StreamTotals",
    "TablePointSource",
    "TagValue",
    "TraceqlQuery",
    "TraceqlSeries",
    "UnsupportedQuery",
    "answer_pieces",
    "compare_spans",
    "detected_field_list",
    "duration_ns",
    "evaluate_instant",
    "evaluate_logql",
    "evaluate_range",
    "exact_conditions",
    "find_by_traceql",
    "find_lines",
    "find_trace_ids",
    "label_key",
    "label_values",
    "level_of",
    "logql_text",
    "parse_logql",
    "parse_promql",
    "parse_selection",
    "parse_traceql",
    "prettified",
    "records_before",
    "rows_of_traces",
    "sample_text",
    "selections",
    "selector_matchers",
    "series_count",
    "series_exemplars",
    "span_metrics",
    "spans_of_traces",
    "spans_with",
    "step_range",
    "stream_label_names",
    "stream_labels",
    "stream_totals",
    "syntax_json",
    "tag_names",
    "tag_of",
    "tag_values",
    "unescaped",
    "volume_by_step",
    "warm",
    "whole_range",
]
