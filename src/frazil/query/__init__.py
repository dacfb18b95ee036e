"""query: SQL over recent telemetry, within limits, and questions asked with it.

    engine.py       Engine: one text in, a result out
    config.py       QueryConfig, Limits

    dialect.py      how our words are spelled for the engine
    as_of.py        tables of other times
    tables.py       all tables that a text can name
    failures.py     the engine's complaints as errors of ours, with place and suggestion
    planner.py      Planner: from a text to a plan
    plan.py         Plan: what is scanned, what is demanded, what may run here
    conditions.py   what a filter demands of each column
    pruning.py      which pieces can match
    narrowing.py    which columns the engine is handed
    tiers.py        the rows of a table at one moment, of both tiers
    history.py      the rows of another time
    snapshots.py    the table that lists snapshots
    cold.py         files of the lake, for the engine
    newest.py       the first rows by time, from few pieces
    tally.py        whether a query only counts rows
    counts.py       Counts: what pieces have how often, kept with them
    cold_counts.py  what files have how often
    like.py         rows that say the same, as one row and a number
    codes.py        values as small numbers
    explain.py      what EXPLAIN says of all that

    sessions.py     what the engine may see and do: tables, views, functions, nothing else
    steady.py       what may be planned and run in this process
    here.py         running in this process
    apart.py        running in a process that can be killed
    worker.py       the program of that process
    messages.py     what both say to each other
    carrying.py     rows on their way there
    loop.py         the thread that waits for the engine and keeps time

    functions.py    our functions: matches, get_json_object, now
    words.py        the language of matches
    matching.py     its scanner
    json_path.py    paths into JSON
    json_walk.py    the walker along them
    texts.py        columns of text as arrays of bytes
    compiling.py    compiled loops

    ask.py          how a question becomes SQL
    box.py          the language of the search box
    box_sql.py      what a text in it means for a table
    as_sql.py       the question of a search, for somebody to read
    fields.py       which names can be searched for
    facets.py       which values there are, and how often
    severities.py   words for how bad something is
    place.py        where a row stands, for pages
    traces.py       which traces there were, and one as a tree
    durations.py    traces by when they began and how long they took
    waterfall.py    a trace line by line, and where its time went
    outline.py      a trace of any size as columns, one span of it, and finding in it
    services.py     how services do, and who calls whom
    logs.py         logs over time, and their facets
    pages.py        places in a long list of logs
    metrics.py      which metrics there are, their labels and exemplars
    series.py       a metric over time
    growth.py       what counters and histograms counted in each step
    increments.py   how much counters grew from point to point
    buckets.py      quantiles of histograms
    volume.py       how much each service sends
    tail.py         rows as they come

A query is planned against the tables' schemas, pieces that cannot match are left out, and the rest
is run. Work that the engine can be stopped in runs in this process, on the engine's threads;
whatever may multiply rows or text runs apart. Any thread may ask; a result belongs to one reader.
"""

from frazil.query.as_sql import written
from frazil.query.ask import Ask, Filters, Range, row_conditions
from frazil.query.box_sql import box_conditions
from frazil.query.config import QueryConfig
from frazil.query.durations import TraceDot, trace_dots
from frazil.query.engine import Engine
from frazil.query.facets import Facet, FacetsAnswer, facets_of
from frazil.query.fields import NamedField, fields_of
from frazil.query.functions import warm
from frazil.query.logs import COLUMNS as LOG_COLUMNS
from frazil.query.logs import (
    Around,
    Bar,
    LogRow,
    facets,
    find_logs,
    histogram,
    log_rows,
    logs_around,
    logs_of_trace,
)
from frazil.query.logs import Which as WhichLogs
from frazil.query.logs import conditions_of as log_conditions
from frazil.query.metrics import Exemplar, Label, Metric, exemplars, metric_labels, metric_names
from frazil.query.outline import Outline, find_in_trace, outline, span_of_trace
from frazil.query.pages import Pages, log_pages
from frazil.query.place import Place
from frazil.query.series import Series, SeriesAnswer, metric_series
from frazil.query.services import (
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
from frazil.query.tail import Caught, Tail
from frazil.query.traces import Order as TraceOrder
from frazil.query.traces import (
    SpanNode,
    Trace,
    TraceSummary,
    WhichTraces,
    find_traces,
    subtree,
    trace,
)
from frazil.query.traces import Which as WhichSpans
from frazil.query.traces import conditions_of as span_conditions
from frazil.query.volume import Volume, volumes
from frazil.query.waterfall import Line, waterfall

__all__ = [
    "LOG_COLUMNS",
    "Around",
    "Ask",
    "Bar",
    "Caught",
    "Dependency",
    "Engine",
    "Exemplar",
    "Facet",
    "FacetsAnswer",
    "Failure",
    "Filters",
    "Label",
    "Latency",
    "Line",
    "LogRow",
    "Metric",
    "NamedField",
    "Outline",
    "Pages",
    "Place",
    "QueryConfig",
    "Range",
    "Series",
    "SeriesAnswer",
    "Service",
    "ServiceStep",
    "SpanNode",
    "Tail",
    "Trace",
    "TraceDot",
    "TraceOrder",
    "TraceSummary",
    "Volume",
    "WhichLogs",
    "WhichSpans",
    "WhichTraces",
    "box_conditions",
    "dependencies",
    "exemplars",
    "facets",
    "facets_of",
    "failures",
    "fields_of",
    "find_in_trace",
    "find_logs",
    "find_traces",
    "histogram",
    "latencies",
    "log_conditions",
    "log_pages",
    "log_rows",
    "logs_around",
    "logs_of_trace",
    "metric_labels",
    "metric_names",
    "metric_series",
    "outline",
    "row_conditions",
    "service_steps",
    "services",
    "span_conditions",
    "span_of_trace",
    "subtree",
    "trace",
    "trace_dots",
    "volumes",
    "warm",
    "waterfall",
    "written",
]
