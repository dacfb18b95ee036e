"""Query with SQL: one query or statement, or an interactive shell, which opens on a terminal if no
SQL is given. `.help` in the shell lists its commands. Statements such as CREATE VIEW are described
in docs/statements.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.connection import add_where, opened
from frazil.cli.terminal.colors import Colors
from frazil.cli.terminal.text_width import terminal_width
from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.embedded import Embedded

HELP = "Query with SQL: one query, or an interactive shell"
FORMATS = ("table", "json", "csv", "arrow", "parquet")
STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add(
        "--format",
        choices=FORMATS,
        help="default: by the extension of --output, else table",
    )
    add("--json", action="store_const", dest="format", const="json", help="same as --format json")
    add("--output", metavar="FILE", help="write to this file, which appears when complete")
    add("--engine", choices=("spark",), help="run on Spark, in its SQL dialect, for large queries")
    add("--timeout", type=_seconds, metavar="S", help="timeout in seconds")
    add("--expanded", action="store_true", help="print one line per column instead of per row")
    add("--file", metavar="FILE", help="read the SQL from this file")
    add("sql", nargs="?", metavar="SQL", help="the query; - reads standard input")


def run(options: argparse.Namespace) -> int:
    format_name = _format(options)
    if options.sql is None and options.file is None and _is_shell(options):
        from frazil.cli.shell.shell import SqlShell

        with opened(options) as node:
            SqlShell(node, engine=options.engine, timeout_s=options.timeout).run()
        return 0
    statements = _statements(options)
    if format_name != "table" and len(statements) != 1:
        raise Malformed(f"{len(statements)} queries do not fit into one {format_name} document")
    with opened(options) as node:
        for statement in statements:
            _query(node, statement, format_name, options)
    return 0


def _is_shell(options: argparse.Namespace) -> bool:
    return sys.stdin.isatty() and options.format in (None, "table") and options.output is None


def _format(options: argparse.Namespace) -> str:
    """Return `--format`, or the format of the output file's extension."""
    extension = "" if options.output is None else Path(options.output).suffix.lstrip(".")
    format_name: str = options.format or (extension if extension in FORMATS else "table")
    if format_name in ("arrow", "parquet") and options.output is None and sys.stdout.isatty():
        raise Malformed(
            f"cannot print {format_name} on a terminal; add --output rows.{format_name}, or "
            "redirect with > or |"
        )
    return format_name


def _statements(options: argparse.Namespace) -> list[str]:
    from frazil.results import is_blank, split_statements

    if options.sql not in (None, STDIN) and options.file is not None:
        raise Malformed("SQL is given both as argument and with --file; use one of them")
    if options.file is not None:
        text = _read(options.file)
    elif options.sql in (None, STDIN):
        text = sys.stdin.read()
    else:
        text = options.sql
    statements, rest = split_statements(text)
    if not is_blank(rest):
        statements.append(rest.strip())
    if not statements:
        raise Malformed("no query; write one, as in frazil sql 'SELECT count(*) FROM logs'")
    return statements


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Malformed(f"--file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Malformed(f"--file {path} is not UTF-8 text") from None


def _query(
    node: Embedded | Client, text: str, format_name: str, options: argparse.Namespace
) -> None:
    from frazil.cli.shell.doors import start
    from frazil.cli.terminal.output import write_to_file, write_to_stdout
    from frazil.cli.views.rows import TableStyle, pieces_of
    from frazil.model import SystemClock
    from frazil.results import Limits

    is_terminal = options.output is None and sys.stdout.isatty()
    style = TableStyle(
        columns=terminal_width(sys.stdout) if is_terminal else None,
        paint=Colors(is_on=False) if options.output is not None else Colors.of(sys.stdout),
        is_expanded=options.expanded or None,
    )
    timeout_ms = None if options.timeout is None else max(1, round(options.timeout * 1000))
    clock = SystemClock()
    start_ns = clock.monotonic_ns()
    limits = Limits(timeout_ms=timeout_ms)
    with start(node, text, limits=limits, engine=options.engine) as result:
        pieces = pieces_of(result, format_name, style, clock, start_ns)
        if options.output is None:
            write_to_stdout(pieces)
        else:
            write_to_file(Path(options.output), pieces)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be a number of seconds above 0")
    return seconds
