"""Send OTLP/JSON lines to a node: files of `frazil export` or of the OpenTelemetry Collector's file
exporter, plain, gzip or zstd.

An invalid line is reported with file and line number, and the rest is sent. The same line within
ten minutes (log.digest_window_ms) is stored once."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.options import add_json
from frazil.cli.otlp_target import add_target, target_of

if TYPE_CHECKING:
    from frazil.otlp_files import ImportTotals, LineOutcome, ReadLine

HELP = "Send OTLP/JSON lines to a node"
FAILED = 1
STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    add_target(parser)
    add_json(parser, "print one JSON object at the end: what was acknowledged")


def run(options: argparse.Namespace) -> int:
    """Send all lines. Returns 1 if some were invalid or rejected."""
    from frazil.cli.terminal.progress import ProgressLine
    from frazil.model import SystemClock
    from frazil.otlp_files import Importer

    clock = SystemClock()
    importer = Importer(target_of(options), clock=clock)
    totals = importer.totals
    total = _total_bytes(options.files)
    files = Files(options.files)
    with ProgressLine(
        "import", total=total, unit="B", clock=clock, is_quiet=options.json
    ) as progress:

        def report(outcome: LineOutcome) -> None:
            if outcome.error is not None:
                progress.wipe()
                print(f"{outcome.read.location}: {outcome.error}", file=sys.stderr)
            count = sum(totals.records.values())
            progress.update(files.position, f"{count:,} records")

        try:
            importer.run(files.lines(), report)
        finally:
            progress.close()
            _print_totals(totals, options.json)
    return FAILED if totals.bad_lines else 0


class Files:
    """Lines of several files, and how many bytes were read."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self.position = 0

    def lines(self) -> Iterator[ReadLine]:
        from frazil.otlp_files import read_lines

        before = 0
        for path in self._paths:
            for read in read_lines(path):
                self.position = before + read.position
                yield read
            before = self.position


def _print_totals(totals: ImportTotals, is_json: bool) -> None:
    if is_json:
        facts = {
            "lines": totals.lines,
            "bad_lines": totals.bad_lines,
            "acknowledged": totals.records,
            "refused": totals.refused,
            "retries": totals.retries,
        }
        print(json.dumps(facts))
        return
    records = ", ".join(f"{count:,} {signal}" for signal, count in totals.records.items())
    print(f"{totals.lines:,} lines. Acknowledged: {records}.")
    if totals.bad_lines:
        print(f"{totals.bad_lines:,} lines were invalid or rejected.", file=sys.stderr)


def _total_bytes(paths: list[str]) -> int | None:
    """Return the size of all files; None if unknown."""
    try:
        return None if STDIN in paths else sum(Path(path).stat().st_size for path in paths)
    except OSError:
        # Opening the file reports what is wrong.
        return None
