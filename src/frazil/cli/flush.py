"""Bring all that a data folder holds into its tables."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from frazil.cli.options import add_config, add_data, add_json, folder_config

if TYPE_CHECKING:
    from frazil.lake import Appended

HELP = "bring all that a data folder holds into its tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_data(parser, "the folder, which no node may use now")
    add_json(parser, "one line of JSON per commit")


def run(options: argparse.Namespace) -> int:
    """Bring all that is in the log into the tables, and say what was new."""
    from frazil.embedded import flush_folder

    done = flush_folder(folder_config(options))
    for each in done:
        say_appended(each, options.json)
    if not done and not options.json:
        print("nothing new")
    return 0


def say_appended(done: Appended, is_json: bool) -> None:
    if is_json:
        print(json.dumps(done.to_dict()), flush=True)
    else:
        print(f"{done.table}: {done.row_count} rows, {done.dead_count} dead letters", flush=True)
