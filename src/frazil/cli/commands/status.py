"""Show node status: rates, lag of each stage, sizes, the last commit, and problems with what to do.
Exits with 1 if a part of the node has failed."""

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


HELP = "Show node status: rates, lag, sizes, problems"
FAILED = 1
WATCH_S = 1.0
HOME, CLEAR_BELOW, CLEAR_LINE = "\x1b[H", "\x1b[J", "\x1b[K"
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""Switch to the alternate screen without a cursor, and back."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser, has_data=False)
    parser.add_argument("--watch", action="store_true", help="refresh every second, until Ctrl-C")
    add_json(parser, "print one JSON object; with --watch one per refresh")


def run(options: argparse.Namespace) -> int:
    node = connected(options)
    status = fetch(node)
    if not options.watch:
        _print(status, node.url, options)
        return 0 if status["is_ready"] else FAILED
    try:
        _watch(node, status, options)
    except KeyboardInterrupt:
        return 0  # Ctrl-C is how to leave.
    return 0


def fetch(node: Client) -> dict[str, Any]:
    """Return the status and health of a node."""
    return {**node.get("/api/v1/status"), **node.get("/api/v1/health")}


def _print(status: dict[str, Any], url: str, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(status), flush=True)
        return
    paint = Colors.of(sys.stdout)
    for line in screen(status, url, terminal_width(sys.stdout), paint):
        print(line)


def _watch(node: Client, status: dict[str, Any], options: argparse.Namespace) -> None:
    clock = SystemClock()
    if options.json or not sys.stdout.isatty():
        while True:
            _print(status, node.url, options)
            clock.sleep(WATCH_S)
            status = fetch(node)
    paint = Colors.of(sys.stdout)
    print(ENTER, end="")
    try:
        problem = ""
        while True:
            lines = list(screen(status, node.url, terminal_width(sys.stdout), paint))
            lines.append(paint(problem, RED))
            text = "".join(f"{line}{CLEAR_LINE}\n" for line in lines)
            print(f"{HOME}{text}{CLEAR_BELOW}", end="", flush=True)
            clock.sleep(WATCH_S)
            try:
                status, problem = fetch(node), ""
            except Unavailable as error:
                problem = f"stale: {error}"
    finally:
        print(LEAVE, end="", flush=True)
