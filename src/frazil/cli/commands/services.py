"""Show request rate, error rate and latency of each service, as the Services screen does."""

from __future__ import annotations

import argparse

from frazil.cli.connection import add_where, opened
from frazil.cli.options import add_json
from frazil.cli.terminal.table import Row, headings_of, print_table
from frazil.cli.terminal.units import count_text, duration_text
from frazil.cli.times import moment
from frazil.errors import Malformed
from frazil.model import SystemClock

HELP = "Show request rate, error rate and latency of services"
SINCE = "1h"
NO_SERVICES = "no service sent anything in this time; `frazil demo` sends some telemetry"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add("--since", default=SINCE, metavar="TIME", help=f"start, as 15m or a time ({SINCE})")
    add("--until", default="0s", metavar="TIME", help="end, as 5m or a time (now)")
    add_json(parser, "print one JSON object per service")


def run(options: argparse.Namespace) -> int:
    from frazil.query import TimeRange, services
    from frazil.results import json_of

    clock = SystemClock()
    since, until = moment(options.since, clock), moment(options.until, clock)
    if until <= since:
        raise Malformed(f"--until {options.until} must be after --since {options.since}")
    with opened(options) as node:
        found = services(node.ask, within=TimeRange(since=since, until=until))
    if options.json:
        for service in found:
            print(json_of(service).decode())
        return 0
    if not found:
        print(NO_SERVICES)
        return 0
    seconds = (until - since).total_seconds()
    numbers = ("requests", "requests/s", "error rate", "p50", "p95", "p99", "logs", "error logs")
    rows: list[Row] = [
        (
            service.name,
            count_text(service.request_count),
            f"{service.request_count / seconds:.3g}",
            _share(service.error_count, service.request_count),
            *map(_duration, (service.p50_nano, service.p95_nano, service.p99_nano)),
            count_text(service.log_count),
            count_text(service.error_log_count),
        )
        for service in sorted(found, key=lambda each: (-each.request_count, each.name))
    ]
    print_table(headings_of("service", numbers=numbers), rows)
    return 0


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _duration(nanos: int | None) -> str:
    return "-" if nanos is None else duration_text(nanos)
