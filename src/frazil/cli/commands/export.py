"""Write telemetry as OTLP/JSON lines, the format of the OpenTelemetry Collector's file exporter."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from frazil.cli.connection import add_where, opened
from frazil.cli.options import add_json
from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.model import Clock
    from frazil.otlp_files import ExportFilter

HELP = "Write telemetry as OTLP/JSON lines"
SIGNALS = ("logs", "traces", "metrics")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add("--signal", choices=SIGNALS, help="only this signal")
    add("--since", metavar="TIME", help="from this time on: 15m, 2h, 3d ago, or 2026-11-16T10:00Z")
    add("--until", metavar="TIME", help="before this time")
    add("--service", metavar="NAME", help="only this service")
    add("--trace", metavar="ID", help="only this trace (no metrics)")
    add("--where", metavar="SQL", help='only rows that match, as in "severity_number >= 17"')
    add("--output", metavar="FILE", help="output file (default: standard output)")
    add_json(parser, "print one JSON object on standard error at the end; no progress")


def run(options: argparse.Namespace) -> int:
    """Write the selected rows in the order of arrival."""
    from frazil.cli.terminal.progress import ProgressLine
    from frazil.model import SystemClock
    from frazil.otlp_files import export_lines, row_count

    clock = SystemClock()
    selection = _selection(options, clock)
    counts = dict.fromkeys(selection.signals, 0)
    with ExitStack() as stack:
        node = stack.enter_context(opened(options))
        total = row_count(node, selection)
        output = stack.enter_context(_output(options.output))
        # A progress bar would mix with lines on the same terminal.
        is_quiet = options.json or (options.output is None and sys.stdout.isatty())
        progress = stack.enter_context(
            ProgressLine("export", total=total, unit="rows", clock=clock, is_quiet=is_quiet)
        )
        for line in export_lines(node, selection):
            output.write(line.text + b"\n")
            counts[line.signal] += line.row_count
            progress.update(sum(counts.values()))
    if options.json:
        print(json.dumps(counts), file=sys.stderr)
    elif options.output is not None:
        totals = ", ".join(f"{count:,} {signal}" for signal, count in counts.items())
        print(f"{options.output}: {totals}", file=sys.stderr)
    return 0


def _selection(options: argparse.Namespace, clock: Clock) -> ExportFilter:
    from frazil.cli.times import moment
    from frazil.otlp_files import ExportFilter

    signals = SIGNALS if options.trace is None else SIGNALS[:2]
    return ExportFilter(
        since=None if options.since is None else moment(options.since, clock),
        until=None if options.until is None else moment(options.until, clock),
        service=options.service,
        trace_id=options.trace,
        where=options.where,
        signals=signals if options.signal is None else (options.signal,),
    )


@contextmanager
def _output(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("wb"))
        except OSError as error:
            raise Malformed(f"cannot write {path}: {error.strerror}") from None
        yield file
