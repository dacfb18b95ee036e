"""Bring what a Kafka holds into tables, without a log of our own."""

from __future__ import annotations

import argparse
from typing import Any

from frazil.cli.commands.flush import say_appended
from frazil.cli.logging import log_to_stderr
from frazil.cli.options import add_set

HELP = "bring what a Kafka holds into tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--config", metavar="FILE", help="settings in TOML, also passwords; flags are stronger")
    add("--data", metavar="DIR", help="a folder of its own for what is temporary (data)")
    add("--kafka", metavar="HOST:PORT", help="one broker or more, with commas between")
    add("--catalog", metavar="URI", help="of the Iceberg catalog; an SQLite file in DIR without")
    add("--warehouse", metavar="URI", help="where tables are kept; a folder in DIR without")
    add("--master", metavar="URL", help="where Spark runs its tasks (local[2])")
    add("--skip-lost", action="store_true", help="go on without offsets Kafka has removed already")
    add("--once", action="store_true", help="end when all that is there now is in the tables")
    add("--json", action="store_true", help="one line of JSON per commit")
    add_set(parser)


def run(options: argparse.Namespace) -> int:
    """Fill tables from a Kafka, until it is told to stop."""
    from frazil.appender import run as run_appender
    from frazil.config import load
    from frazil.model import SystemClock, SystemRand

    config = load(options.config, _overrides(options), assignments=options.assignments)
    log_to_stderr()
    run_appender(
        config,
        is_once=options.once,
        tell=lambda done: say_appended(done, options.json),
        clock=SystemClock(),
        rand=SystemRand(),
    )
    return 0


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    kafka: dict[str, Any] = {} if options.kafka is None else {"brokers": options.kafka}
    if options.skip_lost:
        kafka["skip_lost"] = True
    given = {
        "kafka": kafka or None,
        "catalog": None if options.catalog is None else {"uri": options.catalog},
        "warehouse": options.warehouse,
        "master": options.master,
    }
    lake = {setting: value for setting, value in given.items() if value is not None}
    overrides: dict[str, Any] = {"lake": lake} if lake else {}
    if options.data is not None:
        overrides["data"] = options.data
    return overrides
