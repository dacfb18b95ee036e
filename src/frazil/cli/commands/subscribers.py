"""List the subscribers of the log and their lag, or remove one that is gone for good."""

from __future__ import annotations

import argparse
import json
from typing import Any

from frazil.cli.connection import add_where, connected, is_folder
from frazil.cli.data_folder import confirm, opened_log
from frazil.cli.options import add_json
from frazil.cli.terminal.table import Row, headings_of, print_facts
from frazil.errors import Malformed

HELP = "List the subscribers of the log and their lag"
HEADINGS = headings_of("subscriber", "topic", numbers=("lag", "in flight"))
NOT_DONE = 1
HOT_PREFIX = "hot_"
"""Prefix of the hot tier's subscribers. Removing one would make it read its topic again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add = parser.add_argument
    add(
        "--remove",
        metavar="NAME",
        help="remove it; it no longer delays retention",
    )
    add("--yes", action="store_true", help="do not ask for confirmation")
    add_json(parser, "print one JSON object per subscriber")


def run(options: argparse.Namespace) -> int:
    if options.remove is not None:
        return _remove(options)
    subscribers = _from_folder(options) if is_folder(options) else _from_node(options)
    print_facts(subscribers, HEADINGS, _row, "no subscribers", is_json=options.json)
    return 0


def _row(subscriber: dict[str, Any]) -> Row:
    lag, in_flight = subscriber["lag_offsets"], subscriber["in_flight_batches"]
    return (subscriber["subscriber"], subscriber["topic"], f"{lag:,}", f"{in_flight:,}")


def _from_node(options: argparse.Namespace) -> list[dict[str, Any]]:
    subscribers: list[dict[str, Any]] = connected(options).get("/api/v1/status")["subscribers"]
    return subscribers


def _from_folder(options: argparse.Namespace) -> list[dict[str, Any]]:
    with opened_log(options, "frazil subscribers") as log:
        return [
            {
                "subscriber": subscriber.name,
                "topic": subscriber.topic,
                "lag_offsets": subscriber.lag(),
                "in_flight_batches": subscriber.in_flight(),
            }
            for subscriber in log.subscribers()
        ]


def _remove(options: argparse.Namespace) -> int:
    name = options.remove
    if not is_folder(options):
        raise Malformed("--remove needs --data, and no running node: stop the node first")
    if name.startswith(HOT_PREFIX):
        raise Malformed(f"{name} belongs to the hot tier and cannot be removed")
    if not confirm(f"Remove {name} and its progress?", is_sure=options.yes):
        return NOT_DONE
    with opened_log(options, "frazil subscribers") as log:
        log.unsubscribe(name)
    print(json.dumps({"removed": name}) if options.json else f"removed {name}")
    return 0
