"""Run PySpark on a data folder: an interactive shell, or a script."""

from __future__ import annotations

import argparse
from pathlib import Path

from frazil.cli.options import add_config, add_data, folder_config

HELP = "Run PySpark on a data folder: a shell or a script"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_data(parser, "data folder; a node may be running")
    add = parser.add_argument
    add("--settings", action="store_true", help="print the Spark settings, for spark-submit")
    add("script", nargs="?", metavar="SCRIPT", help="Python script; `spark` is the session")
    add("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the script")


def run(options: argparse.Namespace) -> int:
    from frazil import lake

    config = folder_config(options)
    folder = Path(config.data)
    if options.settings:
        for name, value in sorted(lake.user_settings(folder, config.lake).items()):
            print(f"{name} {value}")
        return 0
    spark = lake.session(folder, config.lake)
    try:
        if options.script is not None:
            lake.run_script(spark, options.script, options.arguments)
        else:
            lake.open_shell(spark, folder.absolute(), config.lake)
    finally:
        spark.stop()
    return 0
