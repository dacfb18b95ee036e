"""List sources and sinks with their state, show one, or pause, resume and restart it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from frazil.cli.connection import add_where, connected
from frazil.cli.options import add_json
from frazil.cli.terminal.table import Row, headings_of, print_facts
from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.client import Client

HELP = "List sources and sinks, pause, resume or restart one"
HEADINGS = headings_of(
    "connector", "role", "type", "topic", "state", "why", numbers=("records", "lag")
)
ACTIONS = ("ls", "status", "pause", "resume", "restart")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser, has_data=False)
    parser.add_argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        default="ls",
        help="default: ls. They are made and dropped with statements: CREATE SOURCE, DROP SINK",
    )
    parser.add_argument("connector", nargs="?", help="its name, or source/name, sink/name")
    add_json(parser, "print one JSON object per connector")


def run(options: argparse.Namespace) -> int:
    node = connected(options)
    found: list[dict[str, Any]] = node.get("/api/v1/connectors")["connectors"]
    if options.action == "ls":
        print_facts(found, HEADINGS, _row, "no connectors", is_json=options.json)
        return 0
    if options.connector is None:
        raise Malformed(f"name a connector: frazil connect {options.action} NAME")
    one = _named(found, options.connector)
    if options.action == "status":
        print(json.dumps(one) if options.json else _facts(one))
        return 0
    _act(node, options.action, one)
    name = f"{one['role']} {one['connector']}"
    done = {"pause": "paused", "resume": "resumed", "restart": "restarted"}[options.action]
    print(json.dumps({done: one["connector"]}) if options.json else f"{done} {name}")
    return 0


def _act(node: Client, action: str, one: dict[str, Any]) -> None:
    role, name = one["role"], one["connector"]
    if action == "restart":
        node.call("POST", "/api/v1/connectors/restart", {"role": role, "connector": name})
    else:
        node.execute(f"{action.upper()} {role.upper()} {name}").fetchall()


def _named(found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    fitting = [
        each for each in found if name in (each["connector"], f"{each['role']}/{each['connector']}")
    ]
    if len(fitting) > 1:
        raise Malformed(f"{name} is a source and a sink; write source/{name} or sink/{name}")
    if not fitting:
        known = ", ".join(each["connector"] for each in found) or "none"
        raise Malformed(f"there is no connector {name}; there are: {known}")
    return fitting[0]


def _row(each: dict[str, Any]) -> Row:
    lag = each["lag_offsets"]
    return (
        each["connector"],
        each["role"],
        each["type"],
        each["topic"],
        each["state"],
        each["why"],
        f"{each['records']:,}",
        None if lag is None else f"{lag:,}",
    )


def _facts(each: dict[str, Any]) -> str:
    shown = {key: value for key, value in each.items() if value is not None}
    width = max(map(len, shown))
    return "\n".join(f"{key:<{width}}  {value}" for key, value in shown.items())
