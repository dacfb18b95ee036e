"""Show records as they come in: time, severity, service, text, attributes; a line each."""

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

HELP = "show records as they come in"
HISTORY = 10
HISTORY_MAX = 1000
RETRY_S, RETRY_S_MAX = 1.0, 10.0
"""First and longest wait before a node that went away is asked again."""
DRAWN = {"logs": log_line, "spans": span_line}

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser, has_data=False)
    add = parser.add_argument
    add("query", nargs="?", help="as in the search box: words, service:cart, severity:>=WARN")
    add("--table", choices=tuple(DRAWN), default="logs", help="what to show (logs)")
    add("--service", metavar="NAME", help="only of this service")
    add("--level", type=_level, metavar="LEVEL", help="only as bad as this or worse, as warn")
    add("--match", metavar="WORDS", help="only logs that have these words, as `matches` in SQL")
    add("--filter", action="append", default=[], metavar="NAME=VALUE", help="column or attribute")
    add("--exclude", action="append", default=[], metavar="NAME=VALUE", help="none of these")
    add("--lines", type=_count, default=HISTORY, metavar="N", help=f"first the last N ({HISTORY})")
    add("--wrap", action="store_true", help="do not cut lines where the terminal ends")
    add_json(parser, "a line of JSON for each record, with all that is known of it")


def run(options: argparse.Namespace) -> int:
    """Until Ctrl-C. A node that goes away is waited for."""
    node = connected(options)
    show = TailOutput(options)
    try:
        for event in TailStream(node, options).events():
            show.event(event)
    except KeyboardInterrupt:
        return 0  # That is how one leaves.
    return 0


class TailStream:
    """The rows of a tail, each once, over as many connections as it takes."""

    def __init__(self, node: Client, options: argparse.Namespace) -> None:
        self._node = node
        self._options = options
        self._clock = SystemClock()
        self._place: str | None = None
        """The id of the last event, from which the node goes on."""
        self._is_connected = False

    def events(self) -> Iterator[tuple[str, Row]]:
        """`row`, `skipped` with a count, `lost` and `back` when the node goes and comes. The node
        must be there in the beginning."""
        yield from self._connection(with_history=True)
        wait_s = RETRY_S
        while True:
            if self._is_connected:
                self._is_connected = False
                yield "lost", {}
                wait_s = RETRY_S
            self._clock.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_S_MAX)
            with suppress(Unavailable, Overloaded):  # it may still come back
                yield from self._connection(with_history=False)

    def _connection(self, *, with_history: bool) -> Iterator[tuple[str, Row]]:
        """The events of one connection, until it ends, however it does."""
        parameters = parameters_of(self._options)
        lines = self._node.lines("/api/v1/tail", parameters, last_event_id=self._place)
        events = parsed(lines)
        # The node says first where it begins; what was there before is asked for after that. Rows
        # that came in between are in both, and are known by their place.
        _, self._place, _ = next(events, ("", self._place, {}))
        self._is_connected = True
        seen: set[object] = set()
        if with_history:
            for row in history(self._node, self._options):
                seen.add(place_of(row))
                yield "row", row
        else:
            yield "back", {}
        with suppress(Unavailable):
            for name, place, row in events:
                if name == "skipped":
                    yield name, row
                elif row and place_of(row) not in seen:
                    yield "row", row
                self._place = place or self._place


def parameters_of(options: argparse.Namespace) -> dict[str, object]:
    """What the node is asked for."""
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


def parsed(lines: Iterator[str]) -> Iterator[tuple[str, str | None, Row]]:
    """Server-sent events: name, id and data. The first line of a stream is an event, too."""
    name, place, data = "row", None, ""
    for line in lines:
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "id":
                place = value
            elif field == "data":
                data += value
        else:
            yield name, place, json.loads(data) if data else {}
            name, place, data = "row", None, ""


def history(node: Client, options: argparse.Namespace) -> Iterator[Row]:
    """The last records that are there already, oldest first."""
    from frazil.query import box_conditions, find_logs, row_conditions
    from frazil.results import json_of

    if options.lines == 0:
        return iter(())
    asked = parameters_of(options)
    filters, exclude = pairs_of(asked["filter"]), pairs_of(asked["exclude"])
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

    wanted = row_conditions(filters, exclude, SPANS)
    wanted += box_conditions("spans", options.query or "")
    conditions = " AND ".join(wanted)
    spans = node.ask(
        f"SELECT * FROM spans {f'WHERE {conditions}' if conditions else ''} "
        f"ORDER BY time DESC LIMIT {options.lines}"
    ).to_pylist(maps_as_pydicts="lossy")
    return (json.loads(json_of(row)) for row in reversed(spans))


def pairs_of(texts: object) -> dict[str, str]:
    """`name=value`, as the node takes them."""
    assert isinstance(texts, list)
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Malformed(f"{text!r} is no filter; write name=value, as service_name=cart")
        pairs[name] = value
    return pairs


def place_of(row: Row) -> object:
    """Where in the log a row comes from: no two have the same."""
    place = row.get("place")
    if place is not None:
        return place["partition"], place["offset"], place["row"]
    return row.get("_log_partition"), row.get("_offset"), row.get("_row")


class TailOutput:
    """Writes events down: records on standard output, the rest on standard error."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._is_json = options.json
        self._is_cut = sys.stdout.isatty() and not options.wrap
        self._draw = DRAWN[options.table]
        self._paint = Colors.of(sys.stdout)
        self._paint_notes = Colors.of(sys.stderr)
        self._day = brief_time(SystemClock().wall_ms() * NS_PER_MS)[: len("2026-11-16")]

    def event(self, event: tuple[str, Row]) -> None:
        name, row = event
        if name == "row":
            self._say_day(row)
            print(self._line(row), flush=True)
        elif name == "skipped":
            self._note(f"… {row['count']:,} more came too fast to be shown")
        elif name == "lost":
            self._note("the node is gone; waiting for it, Ctrl-C ends this")
        elif name == "back":
            self._note("connected again, going on where it was")

    def _say_day(self, row: Row) -> None:
        """Lines have the time only; a day that is not the one of the line above is said."""
        day = str(row.get("time", ""))[: len(self._day)]
        if not self._is_json and day and day != self._day:
            self._day = day
            print(self._paint(f"── {day}", DIM))

    def _line(self, row: Row) -> str:
        if self._is_json:
            return json.dumps(row, ensure_ascii=False)
        return self._draw(row, terminal_width(sys.stdout) if self._is_cut else None, self._paint)

    def _note(self, text: str) -> None:
        print(self._paint_notes(text, DIM), file=sys.stderr, flush=True)


def _level(text: str) -> str:
    if text.upper() not in WORDS:
        known = ", ".join(word.lower() for word in WORDS)
        raise argparse.ArgumentTypeError(f"{text} is no level; use one of {known}")
    return text.upper()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > HISTORY_MAX:
        raise argparse.ArgumentTypeError(f"{text} is no number from 0 to {HISTORY_MAX}")
    return int(text)
