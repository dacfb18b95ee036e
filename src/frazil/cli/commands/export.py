"""Write telemetry as lines of OTLP/JSON, as the file exporter of collectors does."""

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

HELP = "write telemetry as lines of OTLP/JSON"
SIGNALS = ("logs", "traces", "metrics")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add("--signal", choices=SIGNALS, help="just this one")
    add("--since", metavar="TIME", help="from then on: 15m, 2h, 3d ago, or 2026-11-16T10:00Z")
    add("--until", metavar="TIME", help="before then")
    add("--service", metavar="NAME", help="of this service")
    add("--trace", metavar="ID", help="of this trace; no metrics, which belong to none")
    add("--where", metavar="SQL", help='for which this is true, as in "severity_number >= 17"')
    add("--output", metavar="FILE", help="standard output without")
    add_json(parser, "at the end, one line of JSON on standard error; no progress")


def run(options: argparse.Namespace) -> int:
    """Write all rows that were chosen, in the order in which they came in."""
    from frazil.cli.terminal.progress import ProgressLine
    from frazil.model import SystemClock
    from frazil.otlp_files import export_lines, row_count

    clock = SystemClock()
    choice = _choice(options, clock)
    counts = dict.fromkeys(choice.signals, 0)
    with ExitStack() as stack:
        asked = stack.enter_context(opened(options))
        total = row_count(asked, choice)
        output = stack.enter_context(_output(options.output))
        # A bar would be in the way of lines that go to the same terminal.
        is_quiet = options.json or (options.output is None and sys.stdout.isatty())
        progress = stack.enter_context(
            ProgressLine("export", total=total, unit="rows", clock=clock, is_quiet=is_quiet)
        )
        for line in export_lines(asked, choice):
            output.write(line.text + b"\n")
            counts[line.signal] += line.row_count
            progress.update(sum(counts.values()))
    if options.json:
        print(json.dumps(counts), file=sys.stderr)
    elif options.output is not None:
        said = ", ".join(f"{count:,} {signal}" for signal, count in counts.items())
        print(f"{options.output}: {said}", file=sys.stderr)
    return 0


def _choice(options: argparse.Namespace, clock: Clock) -> ExportFilter:
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
