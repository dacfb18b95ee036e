"""Show a trace as a waterfall, or list the newest traces that match a search. A unique prefix of
the id is enough."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from frazil.cli.connection import add_where, opened
from frazil.cli.options import add_json
from frazil.cli.terminal.colors import Colors
from frazil.cli.terminal.table import Heading, Row, headings_of, print_table
from frazil.cli.terminal.text_width import WIDTH_MIN, safe, terminal_width
from frazil.cli.terminal.units import brief_time, duration_text
from frazil.errors import Malformed, Unknown

if TYPE_CHECKING:
    from frazil.query import Ask

HELP = "Show a trace as a waterfall, or list the newest traces"
ID_CHARS = 32
ID_SHOWN_CHARS = 16
"""Of an id in the list: practically unique, and short."""
CANDIDATES_MAX = 5
"""Traces listed when a prefix is ambiguous."""
LISTED = 20
UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9}
NO_MATCH = "no traces match"
NO_TRACES = f"{NO_MATCH}; `frazil demo` sends some"

_HEX = re.compile(r"[0-9a-f]{1,32}", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m)", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add(
        "id",
        nargs="?",
        metavar="ID|QUERY",
        help="trace id or a prefix of it; or list traces with a span that matches, as in the "
        "search box: 'service:cart duration:>100ms'",
    )
    add("--logs", action="store_true", help="show the logs of the trace")
    add("-v", "--verbose", action="store_true", help="show attributes, events and links")
    add("--width", type=_width, metavar="N", help="width in columns (default: the terminal)")
    add("--service", metavar="NAME", help="list: only traces with this service")
    add("--errors", action="store_true", help="list: only traces with a failed span")
    add(
        "--min-duration",
        type=_nanos,
        metavar="TIME",
        help="list: with a span this long, as 250ms",
    )
    add(
        "--limit",
        type=int,
        default=LISTED,
        metavar="N",
        help=f"list: number of traces ({LISTED})",
    )
    add_json(parser, "print the trace as one JSON object, or one object per listed trace")


def run(options: argparse.Namespace) -> int:
    with opened(options) as node:
        if options.id is None or not _HEX.fullmatch(options.id.lower()):
            _list(node.ask, options)
        else:
            _show(node.ask, options)
    return 0


def _list(ask: Ask, options: argparse.Namespace) -> None:
    from frazil.query import find_traces, hints_of
    from frazil.results import json_of

    traces = find_traces(
        ask,
        service=options.service,
        min_duration_nano=options.min_duration,
        only_errors=options.errors,
        limit=options.limit,
        query=options.id,
    )
    if options.json:
        for summary in traces:
            print(json_of(summary).decode())
        return
    if not traces:
        reason = hints_of(ask, "spans", query=options.id).reason if options.id else ""
        print(f"{NO_MATCH}: {safe(reason)}" if reason else NO_TRACES)
        return
    numbers = ("duration", "spans", "errors")
    headings = headings_of("start", "service", "operation", numbers=numbers)
    headings.append(Heading(name="trace id"))
    rows: list[Row] = [
        (
            brief_time(summary.start_unix_nano),
            summary.root_service,
            summary.root_name,
            duration_text(summary.duration_nano),
            str(summary.span_count),
            str(summary.error_count or ""),
            summary.trace_id[:ID_SHOWN_CHARS],
        )
        for summary in traces
    ]
    print_table(headings, rows)
    print("frazil trace ID shows one; a prefix of the id is enough")


def _show(ask: Ask, options: argparse.Namespace) -> None:
    from frazil.cli.views.waterfall import waterfall_lines
    from frazil.query import logs_of_trace, trace, waterfall
    from frazil.results import json_of

    trace_id = _resolve_id(ask, options.id)
    spans = trace(ask, trace_id)
    if spans is None:
        raise Unknown(f"trace {trace_id} not found; frazil trace lists the newest traces")
    lines = waterfall(spans)
    logs = logs_of_trace(ask, trace_id) if options.logs else []
    if options.json:
        document: dict[str, object] = {
            "trace_id": trace_id,
            "span_count": spans.span_count,
            "is_cut": spans.is_cut,
            "lines": lines,
        }
        if options.logs:
            document["logs"] = logs
        print(json_of(document).decode())
        return
    columns = options.width or terminal_width(sys.stdout)
    paint = Colors.of(sys.stdout)
    for line in waterfall_lines(trace_id, lines, logs, columns, paint, is_verbose=options.verbose):
        print(line)
    if spans.is_cut:
        print(f"only the first {spans.span_count:,} spans are shown; there are more")


def _resolve_id(ask: Ask, text: str) -> str:
    """Return the id of the only trace with this prefix."""
    from frazil.query import find_traces_by_id

    prefix = text.lower()
    if len(prefix) == ID_CHARS:
        return prefix
    ids = [found.trace_id for found in find_traces_by_id(ask, prefix, limit=CANDIDATES_MAX + 1)]
    if not ids:
        raise Unknown(f"no trace id starts with {prefix}; frazil trace lists the newest traces")
    if len(ids) > 1:
        listed = ", ".join(ids[:CANDIDATES_MAX]) + (", …" if len(ids) > CANDIDATES_MAX else "")
        raise Malformed(f"several trace ids start with {prefix}: {listed}; use a longer prefix")
    return str(ids[0])


def _width(text: str) -> int:
    if not text.isdecimal() or int(text) < WIDTH_MIN:
        raise argparse.ArgumentTypeError(f"{text} must be a number of at least {WIDTH_MIN}")
    return int(text)


def _nanos(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is not a duration; write 250ms, 1.5s or 2m")
    return round(float(match[1]) * UNITS[match[2]])
