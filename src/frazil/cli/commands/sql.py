"""Ask in SQL: one query, or a shell for many. Without SQL on a terminal the shell opens; .help in
it says what it knows."""

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

HELP = "ask in SQL: one query, or a shell"
FORMATS = ("table", "json", "csv", "arrow", "parquet")
STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add("--format", choices=FORMATS, help="of the rows (by the name of --output, or table)")
    add("--json", action="store_const", dest="format", const="json", help="--format json")
    add("--output", metavar="FILE", help="write there; it appears when it is whole")
    add("--engine", choices=("spark",), help="for what is too large here; in Spark's dialect")
    add("--timeout", type=_seconds, metavar="S", help="give up after so many seconds")
    add("--expanded", action="store_true", help="a line for each column instead of each row")
    add("--file", metavar="FILE", help="read the SQL from there")
    add("sql", nargs="?", metavar="SQL", help="the query; - or nothing reads standard input")


def run(options: argparse.Namespace) -> int:
    """Ask once, or open the shell."""
    how = _format(options)
    if options.sql is None and options.file is None and _is_shell(options):
        from frazil.cli.shell.shell import SqlShell

        with opened(options) as node:
            SqlShell(node, engine=options.engine, timeout_s=options.timeout).run()
        return 0
    statements = _statements(options)
    if how != "table" and len(statements) != 1:
        raise Malformed(f"{len(statements)} queries do not fit into one document of {how}")
    with opened(options) as node:
        for statement in statements:
            _ask(node, statement, how, options)
    return 0


def _is_shell(options: argparse.Namespace) -> bool:
    return sys.stdin.isatty() and options.format in (None, "table") and options.output is None


def _format(options: argparse.Namespace) -> str:
    """What was asked for, or what the name of the file says."""
    ending = "" if options.output is None else Path(options.output).suffix.lstrip(".")
    how: str = options.format or (ending if ending in FORMATS else "table")
    if how in ("arrow", "parquet") and options.output is None and sys.stdout.isatty():
        raise Malformed(
            f"{how} is nothing for a terminal; add --output rows.{how}, or send it on with > or |"
        )
    return how


def _statements(options: argparse.Namespace) -> list[str]:
    from frazil.results import is_blank, split_statements

    if options.sql not in (None, STDIN) and options.file is not None:
        raise Malformed("there is SQL in the command and in --file; give one of them")
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
        raise Malformed(
            "there is no query; write one, as in frazil sql 'SELECT count(*) FROM logs'"
        )
    return statements


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Malformed(f"--file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Malformed(f"--file {path} is no text in UTF-8") from None


def _ask(node: Embedded | Client, text: str, how: str, options: argparse.Namespace) -> None:
    from frazil.cli.terminal.output import write_to_file, write_to_stdout
    from frazil.cli.views.rows import TableStyle, pieces_of
    from frazil.model import SystemClock
    from frazil.results import Limits

    is_seen = options.output is None and sys.stdout.isatty()
    looks = TableStyle(
        columns=terminal_width(sys.stdout) if is_seen else None,
        paint=Colors(is_on=False) if options.output is not None else Colors.of(sys.stdout),
        is_expanded=options.expanded or None,
    )
    timeout_ms = None if options.timeout is None else max(1, round(options.timeout * 1000))
    clock = SystemClock()
    begun_ns = clock.monotonic_ns()
    limits = Limits(timeout_ms=timeout_ms)
    with node.sql(text, limits=limits, engine=options.engine) as result:
        pieces = pieces_of(result, how, looks, clock, begun_ns)
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
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return seconds
