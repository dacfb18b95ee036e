"""Append records from Kafka to the Iceberg tables, without a log in between."""

from __future__ import annotations

import argparse
from typing import Any

from frazil.cli.commands.flush import print_appended
from frazil.cli.options import add_set, folder_overrides
from frazil.program_log import log_to_stderr

HELP = "Append records from Kafka to the Iceberg tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--config", metavar="FILE", help="settings file, for passwords, too")
    add("--data", metavar="DIR", help="folder for temporary files (default: data)")
    add("--kafka", metavar="HOST:PORT", help="bootstrap brokers, separated by commas")
    add("--catalog", metavar="URI", help="Iceberg catalog (default: SQLite file in DIR)")
    add("--warehouse", metavar="URI", help="folder or URI of the tables (default: folder in DIR)")
    add("--master", metavar="URL", help="Spark master (default: local[2])")
    add("--tables", metavar="FOLDER", help="folder with CREATE TABLE … FROM TOPIC, in .sql files")
    add("--skip-lost", action="store_true", help="continue without offsets Kafka has deleted")
    add("--once", action="store_true", help="exit when everything present now is in the tables")
    add("--json", action="store_true", help="print one JSON object per commit")
    add_set(parser)


def run(options: argparse.Namespace) -> int:
    from frazil.appender import run as run_appender
    from frazil.config import load
    from frazil.model import SystemClock, SystemRand

    config = load(options.config, _overrides(options), assignments=options.assignments)
    log_to_stderr()
    run_appender(
        config,
        is_once=options.once,
        on_commit=lambda done: print_appended(done, options.json),
        clock=SystemClock(),
        rand=SystemRand(),
    )
    return 0


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    kafka: dict[str, Any] = {} if options.kafka is None else {"brokers": options.kafka}
    if options.tables is not None:
        kafka["tables"] = options.tables
    if options.skip_lost:
        kafka["skip_lost"] = True
    flags = {
        "kafka": kafka or None,
        "catalog": None if options.catalog is None else {"uri": options.catalog},
        "warehouse": options.warehouse,
        "master": options.master,
    }
    lake = {setting: value for setting, value in flags.items() if value is not None}
    return {**({"lake": lake} if lake else {}), **folder_overrides(options)}
