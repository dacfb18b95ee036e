"""query: SQL over recent telemetry, within limits, and questions asked with it.

    engine.py       Engine: one text in, a result out
    config.py       QueryConfig, Limits
    given.py        rows that somebody else has worked out, as a result
    result.py       Result: rows as they come, as Arrow and as other things
    rendering.py    rows as HTML
    written.py      rows as JSON and CSV

    tokens.py       the words of SQL
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
    leash.py        what a cancel and a time limit pull at

    functions.py    our functions: matches, get_json_object, now
    words.py        the language of matches
    matching.py     its scanner
    json_path.py    paths into JSON
    json_walk.py    the walker along them
    texts.py        columns of text as arrays of bytes
    compiling.py    compiled loops

    ask.py          how a question becomes SQL
    traces.py       which traces there were, and one as a tree
    services.py     how services do, and who calls whom
    logs.py         logs over time, and their facets

A query is planned against the tables' schemas, pieces that cannot match are left out, and the rest
is run. Work that the engine can be stopped in runs in this process, on the engine's threads;
whatever may multiply rows or text runs apart. Any thread may ask; a result belongs to one reader.
"""

from frazil.query.ask import Ask, Range
from frazil.query.config import Limits, QueryConfig
from frazil.query.engine import Engine
from frazil.query.functions import warm
from frazil.query.given import result_of, result_of_run
from frazil.query.leash import Leash
from frazil.query.logs import Bar, Facet, facets, histogram
from frazil.query.result import Result
from frazil.query.services import (
    Dependency,
    Failure,
    Latency,
    dependencies,
    failures,
    latencies,
)
from frazil.query.traces import SpanNode, Trace, TraceSummary, find_traces, trace
from frazil.query.written import columns_of, csv_head, csv_of, json_of, json_rows

__all__ = [
    "Ask",
    "Bar",
    "Dependency",
    "Engine",
    "Facet",
    "Failure",
    "Latency",
    "Leash",
    "Limits",
    "QueryConfig",
    "Range",
    "Result",
    "SpanNode",
    "Trace",
    "TraceSummary",
    "columns_of",
    "csv_head",
    "csv_of",
    "dependencies",
    "facets",
    "failures",
    "find_traces",
    "histogram",
    "json_of",
    "json_rows",
    "latencies",
    "result_of",
    "result_of_run",
    "trace",
    "warm",
]
