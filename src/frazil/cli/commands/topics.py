"""List the topics of the log: one line per partition with offsets, lag and size."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from frazil.cli.connection import add_where, connected, is_folder
from frazil.cli.data_folder import opened_log
from frazil.cli.options import add_json
from frazil.cli.terminal.table import Heading, Row, print_table
from frazil.cli.terminal.units import bytes_text

if TYPE_CHECKING:
    from frazil.log import Log

HELP = "List topics and partitions: offsets, lag, sizes"
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
    add_json(parser, "print one JSON object per partition")


def run(options: argparse.Namespace) -> int:
    if is_folder(options):
        with opened_log(options, "frazil topics") as log:
            partitions = list(_from_folder(log))
    else:
        partitions = list(_from_node(connected(options).get("/api/v1/status")))
    if options.json:
        for partition in partitions:
            print(json.dumps(partition))
        return 0
    if not partitions:
        print("no topics yet; a node creates them when it starts")
        return 0
    print_table(HEADINGS, list(map(_row, partitions)))
    return 0


def _from_node(status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for topic in status["log"]["topics"]:
        for partition in topic["partitions"]:
            yield {"topic": topic["topic"], **partition}


def _from_folder(log: Log) -> Iterator[dict[str, Any]]:
    """Return the same without a node, so without lag."""
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


def _row(partition: dict[str, Any]) -> Row:
    return (
        partition["topic"],
        str(partition["partition"]),
        f"{partition['start_offset']:,}",
        f"{partition['durable_watermark']:,}",
        _count(partition.get("hot_lag_offsets")),
        _count(partition.get("lake_lag_offsets")),
        f"{partition['log_segments']:,}",
        bytes_text(partition["log_bytes"]),
    )


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
