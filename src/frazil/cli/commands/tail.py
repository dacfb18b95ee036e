"""Print records as they arrive, one line each: time, severity, service, text, attributes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from frazil.cli.connection import add_where, connected
from frazil.cli.options import add_json
from frazil.cli.terminal.colors import DIM, Colors
from frazil.cli.terminal.severity import WORDS
from frazil.cli.terminal.text_width import terminal_width
from frazil.cli.terminal.units import brief_time
from frazil.cli.views.tail_line import log_line, span_line
from frazil.errors import Malformed, Overloaded, Unavailable
from frazil.model import NS_PER_MS, SystemClock

if TYPE_CHECKING:
    from frazil.client import Client

HELP = "Print records as they arrive"
HISTORY = 10
HISTORY_MAX = 1000
RETRY_S, RETRY_S_MAX = 1.0, 10.0
"""First and longest wait before reconnecting."""
FORMATTERS = {"logs": log_line, "spans": span_line}

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser, has_data=False)
    add = parser.add_argument
    add("query", nargs="?", help="as in the search box: words, service:cart, severity:>=WARN")
    add("--table", choices=tuple(FORMATTERS), default="logs", help="table to follow (logs)")
    add("--service", metavar="NAME", help="only this service")
    add("--level", type=_level, metavar="LEVEL", help="only this severity or higher, such as warn")
    add("--match", metavar="WORDS", help="only logs with these words, like `matches` in SQL")
    add("--filter", action="append", default=[], metavar="NAME=VALUE", help="only this value")
    add("--exclude", action="append", default=[], metavar="NAME=VALUE", help="not this value")
    add(
        "--lines",
        type=_count,
        default=HISTORY,
        metavar="N",
        help=f"past records ({HISTORY})",
    )
    add("--wrap", action="store_true", help="wrap long lines instead of cutting them")
    add_json(parser, "print one JSON object per record, with all fields")


def run(options: argparse.Namespace) -> int:
    """Print until Ctrl-C. Reconnects if the node goes away."""
    node = connected(options)
    show = TailOutput(options)
    try:
        for event in TailStream(node, options).events():
            show.event(event)
    except KeyboardInterrupt:
        return 0  # Ctrl-C is how to leave.
    return 0


class TailStream:
    """The rows of a tail, each exactly once, across reconnects."""

    def __init__(self, node: Client, options: argparse.Namespace) -> None:
        self._node = node
        self._options = options
        self._clock = SystemClock()
        self._last_id: str | None = None
        """The id of the last event, from which the node continues."""
        self._is_connected = False

    def events(self) -> Iterator[tuple[str, Row]]:
        """Yield `row`; `skipped` with a count; `lost` and `back` on disconnect and reconnect.

        The node must be reachable at the start.
        """
        yield from self._connection(with_history=True)
        wait_s = RETRY_S
        while True:
            if self._is_connected:
                self._is_connected = False
                yield "lost", {}
                wait_s = RETRY_S
            self._clock.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_S_MAX)
            with suppress(Unavailable, Overloaded):  # keep retrying
                yield from self._connection(with_history=False)

    def _connection(self, *, with_history: bool) -> Iterator[tuple[str, Row]]:
        """Yield the events of one connection until it ends."""
        parameters = parameters_of(self._options)
        lines = self._node.lines("/api/v1/tail", parameters, last_event_id=self._last_id)
        events = parse_events(lines)
        # The first event says where the stream begins; history is queried after it. Rows that
        # arrived in between are in both and are recognized by their position.
        _, self._last_id, _ = next(events, ("", self._last_id, {}))
        self._is_connected = True
        seen: set[object] = set()
        if with_history:
            for row in history(self._node, self._options):
                seen.add(position_of(row))
                yield "row", row
        else:
            yield "back", {}
        with suppress(Unavailable):
            for name, event_id, row in events:
                if name == "skipped":
                    yield name, row
                elif row and position_of(row) not in seen:
                    yield "row", row
                self._last_id = event_id or self._last_id


def parameters_of(options: argparse.Namespace) -> dict[str, object]:
    """Return the query parameters of the tail."""
    filters = list(options.filter)
    if options.service is not None:
        filters.append(f"service_name={options.service}")
    return {
        "table": options.table,
        "filter": filters,
        "exclude": options.exclude,
        "search": options.match,
        "severity": options.level,
        "query": options.query,
    }


def parse_events(lines: Iterator[str]) -> Iterator[tuple[str, str | None, Row]]:
    """Parse server-sent events into name, id and data."""
    name, event_id, data = "row", None, ""
    for line in lines:
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "id":
                event_id = value
            elif field == "data":
                data += value
        else:
            yield name, event_id, json.loads(data) if data else {}
            name, event_id, data = "row", None, ""


def history(node: Client, options: argparse.Namespace) -> Iterator[Row]:
    """Return the newest existing records, oldest first."""
    from frazil.query import find_logs, query_conditions, row_conditions
    from frazil.results import json_of

    if options.lines == 0:
        return iter(())
    parameters = parameters_of(options)
    filters, exclude = pairs_of(parameters["filter"]), pairs_of(parameters["exclude"])
    if options.table == "logs":
        rows = find_logs(
            node.ask,
            limit=options.lines,
            filters=filters,
            exclude=exclude,
            search=options.match,
            min_severity=options.level,
            query=options.query,
        )
        return (json.loads(json_of(row)) for row in reversed(rows))
    from frazil.model.arrow import SPANS

    predicates = row_conditions(filters, exclude, SPANS)
    predicates += query_conditions("spans", options.query or "")
    conditions = " AND ".join(predicates)
    spans = node.ask(
        f"SELECT * FROM spans {f'WHERE {conditions}' if conditions else ''} "
        f"ORDER BY time DESC LIMIT {options.lines}"
    ).to_pylist(maps_as_pydicts="lossy")
    return (json.loads(json_of(row)) for row in reversed(spans))


def pairs_of(texts: object) -> dict[str, str]:
    """Parse `name=value` filters."""
    assert isinstance(texts, list)
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Malformed(f"{text!r} is not a filter; write name=value, as service_name=cart")
        pairs[name] = value
    return pairs


def position_of(row: Row) -> object:
    """Return the position of a row in the log, which is unique."""
    position = row.get("place")
    if position is not None:
        return position["partition"], position["offset"], position["row"]
    return row.get("_log_partition"), row.get("_offset"), row.get("_row")


class TailOutput:
    """Prints records on standard output and notes on standard error."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._is_json = options.json
        self._is_cut = sys.stdout.isatty() and not options.wrap
        self._format = FORMATTERS[options.table]
        self._paint = Colors.of(sys.stdout)
        self._paint_notes = Colors.of(sys.stderr)
        self._day = brief_time(SystemClock().wall_ms() * NS_PER_MS)[: len("2026-11-16")]

    def event(self, event: tuple[str, Row]) -> None:
        name, row = event
        if name == "row":
            self._print_day(row)
            print(self._line(row), flush=True)
        elif name == "skipped":
            self._note(f"… {row['count']:,} records skipped: they arrived too fast")
        elif name == "lost":
            self._note("connection lost; reconnecting (Ctrl-C stops)")
        elif name == "back":
            self._note("reconnected; continuing where it stopped")

    def _print_day(self, row: Row) -> None:
        """Print the date when it changes; lines only have the time of day."""
        day = str(row.get("time", ""))[: len(self._day)]
        if not self._is_json and day and day != self._day:
            self._day = day
            print(self._paint(f"── {day}", DIM))

    def _line(self, row: Row) -> str:
        if self._is_json:
            return json.dumps(row, ensure_ascii=False)
        return self._format(row, terminal_width(sys.stdout) if self._is_cut else None, self._paint)

    def _note(self, text: str) -> None:
        print(self._paint_notes(text, DIM), file=sys.stderr, flush=True)


def _level(text: str) -> str:
    if text.upper() not in WORDS:
        known = ", ".join(word.lower() for word in WORDS)
        raise argparse.ArgumentTypeError(f"{text} is not a level; use one of {known}")
    return text.upper()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > HISTORY_MAX:
        raise argparse.ArgumentTypeError(f"{text} must be a number from 0 to {HISTORY_MAX}")
    return int(text)
