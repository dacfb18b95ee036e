"""Serve tools for agents on standard input and output, by the Model Context Protocol: over a node
(`--url`) or a data folder (`--data`). Clients start it; docs/agents.md shows how. A node serves the
same tools over HTTP, at /mcp."""

from __future__ import annotations

import argparse
import sys

from frazil.cli.connection import add_where, opened
from frazil.model import MiB, SystemClock

HELP = "Serve tools for agents (Model Context Protocol)"
ROWS_BYTES_MAX = 64 * MiB
"""Rows of one query inside a tool."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)


def run(options: argparse.Namespace) -> int:
    from frazil.client import Client
    from frazil.results import Limits, Result
    from frazil.serve import McpServer, McpSource, serve_lines

    with opened(options) as node:

        def start(text: str, limits: Limits) -> Result:
            return node.sql(text, limits=limits)

        url = node.url if isinstance(node, Client) else None
        source = McpSource(run=start, clock=SystemClock(), url=url, bytes_max=ROWS_BYTES_MAX)
        serve_lines(McpServer(source), sys.stdin.buffer, sys.stdout.buffer)
    return 0
