"""Erase the rows that match a condition: from the tables, their older snapshots, the hot tier and
the log. Afterwards every data file is read again, and the rows still found are counted. Rows that
arrive during the erasure are not part of it. Exits with 1 if something is left."""

from __future__ import annotations

import argparse
import json
import sys

from frazil.cli.connection import add_where, opened
from frazil.cli.options import add_json
from frazil.cli.terminal.wait import run_with_progress
from frazil.cli.views.removal import print_previews, print_report
from frazil.errors import Malformed

HELP = "Erase rows everywhere, for example personal data"
INCOMPLETE = 1
UNREACHED = (
    "Not erased by this command: backups, exported files, copies of the tables in other places, "
    "records still in Kafka, and the shell history of this command."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--where", required=True, metavar="SQL", help="condition, such as \"body LIKE '%%x%%'\"")
    add("--table", help="only this table (default: every table with these columns)")
    add("--dry-run", action="store_true", help="only count the rows")
    add("--yes", action="store_true", help="do not ask for confirmation")
    add_where(parser)
    add_json(parser, "print one JSON object")


def run(options: argparse.Namespace) -> int:
    where, table = options.where, options.table
    with opened(options) as node:
        if options.dry_run or not options.yes:
            previews = run_with_progress(
                "count",
                lambda: node.preview_erasure(where, table=table),
                None,
                is_quiet=options.json,
            )
            if options.dry_run and options.json:
                print(json.dumps({"tables": [each.to_dict() for each in previews]}))
                return 0
            print_previews(previews)
            if options.dry_run or not _is_confirmed(sum(each.rows for each in previews)):
                return 0
        report = run_with_progress(
            "erase", lambda: node.erase(where, table=table), None, is_quiet=options.json
        )
    if options.json:
        print(json.dumps(report.to_dict()))
    else:
        print_report(report)
        print(UNREACHED)
    return 0 if report.is_complete else INCOMPLETE


def _is_confirmed(rows: int) -> bool:
    """Ask on a terminal. Without rows copies of earlier ones may still be on the disk."""
    if not sys.stdin.isatty():
        raise Malformed("cannot ask for confirmation without a terminal; add --yes to proceed")
    answer = input(f"Erase {rows} rows permanently? Type yes: ")
    return answer.strip().lower() == "yes"
