"""Who reads the log, and how far behind each is; or forget one that will not come back."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from frazil.cli.connection import add_where, connected, is_folder
from frazil.cli.data_folder import confirm, opened_log
from frazil.cli.options import add_json
from frazil.cli.terminal.colors import Colors
from frazil.cli.terminal.table import Heading, Row, table_lines
from frazil.cli.terminal.text_width import terminal_width
from frazil.errors import Malformed

HELP = "who reads the log, and how far behind each is"
NOT_DONE = 1
OWN = "hot_"
"""What the hot tier's own begin with. Without one of them it would read its topic once more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add("--remove", metavar="NAME", help="forget this one; it holds nothing back any more")
    add("--yes", action="store_true", help="do not ask before that")
    add_json(parser, "one line of JSON per subscriber")


def run(options: argparse.Namespace) -> int:
    """List them, or remove one."""
    if options.remove is not None:
        return _remove(options)
    found = _of_folder(options) if is_folder(options) else _of_node(options)
    if options.json:
        for each in found:
            print(json.dumps(each))
        return 0
    if not found:
        print("nobody subscribes to anything")
        return 0
    headings = [
        Heading(name="subscriber"),
        Heading(name="topic"),
        Heading(name="lag", is_number=True),
        Heading(name="in flight", is_number=True),
    ]
    rows: list[Row] = [
        (
            each["subscriber"],
            each["topic"],
            f"{each['lag_offsets']:,}",
            f"{each['in_flight_batches']:,}",
        )
        for each in found
    ]
    columns = terminal_width(sys.stdout) if sys.stdout.isatty() else None
    for line in table_lines(headings, rows, columns, Colors.of(sys.stdout)):
        print(line)
    return 0


def _of_node(options: argparse.Namespace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connected(options).get("/api/v1/status")["subscribers"]
    return found


def _of_folder(options: argparse.Namespace) -> list[dict[str, Any]]:
    with opened_log(options, "frazil subscribers") as log:
        return [
            {
                "subscriber": each.name,
                "topic": each.topic,
                "lag_offsets": each.lag(),
                "in_flight_batches": each.in_flight(),
            }
            for each in log.subscribers()
        ]


def _remove(options: argparse.Namespace) -> int:
    name = options.remove
    if not is_folder(options):
        raise Malformed("--remove needs --data, and no node on that folder: stop the node first")
    if name.startswith(OWN):
        raise Malformed(f"{name} belongs to the hot tier, which cannot do without it")
    if not confirm(f"Forget how far {name} has come?", is_sure=options.yes):
        return NOT_DONE
    with opened_log(options, "frazil subscribers") as log:
        log.unsubscribe(name)
    print(json.dumps({"removed": name}) if options.json else f"{name} is forgotten")
    return 0
