"""List the topics of the log: one line per partition with offsets, lag and size."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from frazil.cli.connection import add_where, connected, is_folder
from frazil.cli.data_folder import opened_log
from frazil.cli.options import add_json
from frazil.cli.terminal.table import Row, headings_of, print_facts
from frazil.cli.terminal.units import bytes_text

if TYPE_CHECKING:
    from frazil.log import Log

HELP = "List topics and partitions: offsets, lag, sizes"
HEADINGS = headings_of(
    "topic",
    numbers=("partition", "start", "end", "hot lag", "lake lag", "segments", "size"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add_json(parser, "print one JSON object per partition")


def run(options: argparse.Namespace) -> int:
    if is_folder(options):
        with opened_log(options, "frazil topics") as log:
            partitions = list(_from_folder(log))
    else:
        partitions = list(_from_node(connected(options).get("/api/v1/status")))
    when_empty = "no topics yet; a node creates them when it starts"
    print_facts(partitions, HEADINGS, _row, when_empty, is_json=options.json)
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
