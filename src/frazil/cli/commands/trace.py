"""Show a trace as a waterfall, or list the newest traces. The beginning of an id is enough, when no
other trace begins like that."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from frazil.cli.connection import add_where, opened
from frazil.cli.options import add_json
from frazil.cli.terminal.colors import Colors
from frazil.cli.terminal.table import Heading, Row, table_lines
from frazil.cli.terminal.text_width import WIDTH_MIN, safe, terminal_width
from frazil.cli.terminal.units import brief_time, duration_text
from frazil.errors import Malformed, Unknown

if TYPE_CHECKING:
    from frazil.query import Ask

HELP = "show a trace as a waterfall, or list the newest"
ID_CHARS = 32
ID_SHOWN_CHARS = 16
"""Of an id in the list: enough to mean one trace, and short enough to leave room."""
LIKE_SHOWN = 5
"""Traces that are named when the beginning of an id means several."""
LISTED = 20
UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9}
NOTHING = "no trace fits; `frazil demo` sends some, and `frazil sql` knows what else is there"

_HEX = re.compile(r"[0-9a-f]{1,32}", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m)", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add("id", nargs="?", metavar="ID", help="of the trace, or its beginning; without, a list")
    add("--logs", action="store_true", help="with what was logged in it")
    add("-v", "--verbose", action="store_true", help="with attributes, events and links")
    add("--width", type=_width, metavar="N", help="columns to draw in (those of the terminal)")
    add("--service", metavar="NAME", help="list: those that this service has a part in")
    add("--errors", action="store_true", help="list: those with a span that failed")
    add("--min-duration", type=_nanos, metavar="TIME", help="list: with a span so long, as 250ms")
    add("--limit", type=int, default=LISTED, metavar="N", help=f"list: at most so many ({LISTED})")
    add_json(parser, "one document with the trace, or a line of JSON per trace of the list")


def run(options: argparse.Namespace) -> int:
    """Draw one trace, or list some."""
    with opened(options) as node:
        if options.id is None:
            _list(node.ask, options)
        else:
            _show(node.ask, options)
    return 0


def _list(ask: Ask, options: argparse.Namespace) -> None:
    from frazil.query import find_traces
    from frazil.results import json_of

    found = find_traces(
        ask,
        service=options.service,
        min_duration_nano=options.min_duration,
        only_errors=options.errors,
        limit=options.limit,
    )
    if options.json:
        for each in found:
            print(json_of(each).decode())
        return
    if not found:
        print(NOTHING)
        return
    headings = [
        Heading(name="start"),
        Heading(name="service"),
        Heading(name="operation"),
        Heading(name="duration", is_number=True),
        Heading(name="spans", is_number=True),
        Heading(name="errors", is_number=True),
        Heading(name="trace id"),
    ]
    rows: list[Row] = [
        (
            brief_time(each.start_unix_nano),
            each.root_service,
            each.root_name,
            duration_text(each.duration_nano),
            str(each.span_count),
            str(each.error_count or ""),
            each.trace_id[:ID_SHOWN_CHARS],
        )
        for each in found
    ]
    columns = terminal_width(sys.stdout) if sys.stdout.isatty() else None
    for line in table_lines(headings, rows, columns, Colors.of(sys.stdout)):
        print(line)
    print("frazil trace ID shows one; the beginning of its id is enough")


def _show(ask: Ask, options: argparse.Namespace) -> None:
    from frazil.cli.views.waterfall import drawn
    from frazil.query import logs_of_trace, trace, waterfall
    from frazil.results import json_of

    trace_id = _whole_id(ask, options.id)
    found = trace(ask, trace_id)
    if found is None:
        raise Unknown(f"there is no span of trace {trace_id} here; frazil trace lists those there")
    lines = waterfall(found)
    logs = logs_of_trace(ask, trace_id) if options.logs else []
    if options.json:
        document: dict[str, object] = {
            "trace_id": trace_id,
            "span_count": found.span_count,
            "is_cut": found.is_cut,
            "lines": lines,
        }
        if options.logs:
            document["logs"] = logs
        print(json_of(document).decode())
        return
    columns = options.width or terminal_width(sys.stdout)
    paint = Colors.of(sys.stdout)
    for line in drawn(trace_id, lines, logs, columns, paint, is_verbose=options.verbose):
        print(line)
    if found.is_cut:
        print(f"only the first {found.span_count:,} spans; there are more")


def _whole_id(ask: Ask, given: str) -> str:
    """The id of the only trace that begins like this."""
    begin = given.lower()
    if not _HEX.fullmatch(begin):
        raise Malformed(f"{safe(given)} is no id of a trace, which has {ID_CHARS} hex digits")
    if len(begin) == ID_CHARS:
        return begin
    # Every digit is below 'g', so these are exactly the ids that begin like this.
    found = ask(
        f"SELECT DISTINCT trace_id FROM spans WHERE trace_id >= '{begin}' "
        f"AND trace_id < '{begin}g' ORDER BY trace_id LIMIT {LIKE_SHOWN + 1}"
    )["trace_id"].to_pylist()
    if not found:
        raise Unknown(f"no trace begins with {begin}; frazil trace lists those there are")
    if len(found) > 1:
        shown = ", ".join(found[:LIKE_SHOWN]) + (", …" if len(found) > LIKE_SHOWN else "")
        raise Malformed(f"several traces begin with {begin}: {shown}; write more of the id")
    return str(found[0])


def _width(text: str) -> int:
    if not text.isdecimal() or int(text) < WIDTH_MIN:
        raise argparse.ArgumentTypeError(f"{text} is no width of at least {WIDTH_MIN}")
    return int(text)


def _nanos(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is no time; write 250ms, 1.5s or 2m")
    return round(float(found[1]) * UNITS[found[2]])
