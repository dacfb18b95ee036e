"""How a node does: what comes in, how far each stage is, sizes, the last commit, and trouble with
what to do. 1 when a part of it has failed."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from frazil.cli.connection import add_where, connected
from frazil.cli.options import add_json
from frazil.cli.terminal.colors import RED, Colors
from frazil.cli.terminal.text_width import terminal_width
from frazil.cli.views.status import screen
from frazil.errors import Unavailable
from frazil.model import SystemClock

if TYPE_CHECKING:
    from frazil.client import Client


HELP = "how a node does: rates, lags, sizes, trouble"
FAILED = 1
WATCH_S = 1.0
HOME, CLEAR_BELOW, CLEAR_LINE = "\x1b[H", "\x1b[J", "\x1b[K"
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""A screen of its own without a cursor, and back to the one before."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser, has_data=False)
    parser.add_argument("--watch", action="store_true", help="again every second, until Ctrl-C")
    add_json(parser, "one document; with --watch a line each time")


def run(options: argparse.Namespace) -> int:
    """Ask once, or again and again."""
    node = connected(options)
    found = ask(node)
    if not options.watch:
        _print(found, node.url, options)
        return 0 if found["is_ready"] else FAILED
    try:
        _watch(node, found, options)
    except KeyboardInterrupt:
        return 0  # That is how one leaves.
    return 0


def ask(node: Client) -> dict[str, Any]:
    """The status of a node, and how each room of it is."""
    return {**node.get("/api/v1/status"), **node.get("/api/v1/health")}


def _print(found: dict[str, Any], url: str, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(found), flush=True)
        return
    paint = Colors.of(sys.stdout)
    for line in screen(found, url, terminal_width(sys.stdout), paint):
        print(line)


def _watch(node: Client, found: dict[str, Any], options: argparse.Namespace) -> None:
    clock = SystemClock()
    if options.json or not sys.stdout.isatty():
        while True:
            _print(found, node.url, options)
            clock.sleep(WATCH_S)
            found = ask(node)
    paint = Colors.of(sys.stdout)
    print(ENTER, end="")
    try:
        trouble = ""
        while True:
            lines = list(screen(found, node.url, terminal_width(sys.stdout), paint))
            lines.append(paint(trouble, RED))
            drawn = "".join(f"{line}{CLEAR_LINE}\n" for line in lines)
            print(f"{HOME}{drawn}{CLEAR_BELOW}", end="", flush=True)
            clock.sleep(WATCH_S)
            try:
                found, trouble = ask(node), ""
            except Unavailable as error:
                trouble = f"this is old: {error}"
    finally:
        print(LEAVE, end="", flush=True)
