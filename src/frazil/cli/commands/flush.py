"""Commit everything acknowledged so far to the Iceberg tables. Returns when it is committed."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from frazil.cli.connection import add_where, connected, is_folder
from frazil.cli.options import add_json, folder_config
from frazil.cli.terminal.wait import lake_lag, run_with_progress

if TYPE_CHECKING:
    from frazil.lake import Appended

HELP = "Commit everything acknowledged so far to the tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add_json(parser, "print one JSON object per commit")


def run(options: argparse.Namespace) -> int:
    if is_folder(options):
        done = run_with_progress(
            "flush", lambda: _flush_folder(options), None, is_quiet=options.json
        )
    else:
        node = connected(options)
        done = run_with_progress("flush", node.flush, lake_lag(node), is_quiet=options.json)
    for commit in done:
        print_appended(commit, options.json)
    if not done and not options.json:
        print("nothing to commit")
    return 0


def _flush_folder(options: argparse.Namespace) -> list[Appended]:
    from frazil.folders import flush_folder

    return flush_folder(folder_config(options))


def print_appended(done: Appended, is_json: bool) -> None:
    if is_json:
        print(json.dumps(done.to_dict()), flush=True)
    else:
        print(f"{done.table}: {done.row_count} rows, {done.dead_count} dead letters", flush=True)
