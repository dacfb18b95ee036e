"""Which topics the log has, and how much is in them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from frazil.cli.connection import add_where, connected, is_folder
from frazil.cli.data_folder import opened_log
from frazil.cli.options import add_json
from frazil.cli.terminal.colors import Colors
from frazil.cli.terminal.table import Heading, Row, table_lines
from frazil.cli.terminal.text_width import terminal_width
from frazil.cli.terminal.units import bytes_text

if TYPE_CHECKING:
    from frazil.log import Log

HELP = "which topics the log has, and how much is in them"
HEADINGS = [
    Heading(name="topic"),
    Heading(name="partition", is_number=True),
    Heading(name="start", is_number=True),
    Heading(name="end", is_number=True),
    Heading(name="hot lag", is_number=True),
    Heading(name="lake lag", is_number=True),
    Heading(name="segments", is_number=True),
    Heading(name="size", is_number=True),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add_json(parser, "one line of JSON per partition")


def run(options: argparse.Namespace) -> int:
    """A line for each partition."""
    if is_folder(options):
        with opened_log(options, "frazil topics") as log:
            found = list(_of_folder(log))
    else:
        found = list(_of_node(connected(options).get("/api/v1/status")))
    if options.json:
        for each in found:
            print(json.dumps(each))
        return 0
    if not found:
        print("no topic yet; a node makes them when it starts")
        return 0
    columns = terminal_width(sys.stdout) if sys.stdout.isatty() else None
    rows: list[Row] = list(map(_row, found))
    for line in table_lines(HEADINGS, rows, columns, Colors.of(sys.stdout)):
        print(line)
    return 0


def _of_node(status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for topic in status["log"]["topics"]:
        for partition in topic["partitions"]:
            yield {"topic": topic["topic"], **partition}


def _of_folder(log: Log) -> Iterator[dict[str, Any]]:
    """The same, as far as it is known where no node runs."""
    for topic in log.topics():
        for partition in topic.partitions:
            view = partition.view
            yield {
                "topic": topic.name,
                "partition": partition.index,
                "start_offset": view.start_offset,
                "durable_watermark": view.durable_watermark,
                "log_bytes": view.size_bytes,
                "log_segments": len(view.segments),
            }


def _row(found: dict[str, Any]) -> Row:
    return (
        found["topic"],
        str(found["partition"]),
        f"{found['start_offset']:,}",
        f"{found['durable_watermark']:,}",
        _count(found.get("hot_lag_offsets")),
        _count(found.get("lake_lag_offsets")),
        f"{found['log_segments']:,}",
        bytes_text(found["log_bytes"]),
    )


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
