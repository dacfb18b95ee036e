"""Find damage in the log of a data folder, and set damaged bytes aside so that it opens again.
Every intact batch is kept. Copy the folder first; no node may be running. Exits with 1 if damage
is left."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from frazil.cli.data_folder import checked_folder, confirm
from frazil.cli.options import add_config, add_data, add_json
from frazil.cli.terminal.units import bytes_text
from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.config import Config
    from frazil.log import RepairReport

HELP = "Find damage in the log and set damaged bytes aside"
NOT_DONE = 1

PartitionKey = tuple[str, int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_data(parser, "data folder; no node may be running")
    add = parser.add_argument
    add("--topic", metavar="NAME", help="only this topic")
    add("--partition", type=int, metavar="N", help="only this partition of --topic")
    add(
        "--floor",
        type=int,
        default=0,
        metavar="OFFSET",
        help="offsets below this are stored elsewhere, such as in a table; with --partition",
    )
    add("--dry-run", action="store_true", help="only print what would be done")
    add("--yes", action="store_true", help="do not ask for confirmation")
    add_json(parser, "print one JSON object per partition")


def run(options: argparse.Namespace) -> int:
    """Examine, ask, repair."""
    config = checked_folder(options)
    if options.partition is not None and options.topic is None:
        raise Malformed("--partition needs --topic")
    if options.floor and options.partition is None:
        raise Malformed("--floor needs --topic and --partition")
    keys = _partitions(config, options)
    reports = {key: _repair(config, key, options, is_dry_run=True) for key in keys}
    damaged = {key: report for key, report in reports.items() if is_damaged(report)}
    if options.dry_run or not damaged:
        _print(reports, options.json, is_done=False)
        return NOT_DONE if damaged else 0
    if not options.json:
        _print(reports, options.json, is_done=False)
    if not confirm("Drop the lost offsets and keep the rest?", is_sure=options.yes):
        return NOT_DONE
    repaired = {key: _repair(config, key, options, is_dry_run=False) for key in damaged}
    _print({**reports, **repaired} if options.json else repaired, options.json, is_done=True)
    return 0


def is_damaged(report: RepairReport) -> bool:
    """Return whether there is anything to repair."""
    return bool(report.lost or report.files or report.damaged_bytes)


def _partitions(config: Config, options: argparse.Namespace) -> list[PartitionKey]:
    from frazil.disk import RealDisk
    from frazil.log import partition_count, topic_names

    disk = RealDisk(config.data)
    counts = {name: partition_count(disk, name) for name in topic_names(disk)}
    if options.topic is None:
        return [(topic, index) for topic, count in counts.items() for index in range(count)]
    if options.partition is not None:
        return [(options.topic, options.partition)]
    return [(options.topic, index) for index in range(counts.get(options.topic, 1))]


def _repair(
    config: Config, key: PartitionKey, options: argparse.Namespace, *, is_dry_run: bool
) -> RepairReport:
    from frazil.disk import RealDisk
    from frazil.log import repair_partition
    from frazil.model import SystemClock, SystemRand

    return repair_partition(
        RealDisk(config.data),
        *key,
        config.log,
        rand=SystemRand(),
        now_ms=SystemClock().wall_ms(),
        floor=options.floor,
        is_dry_run=is_dry_run,
    )


def _print(reports: dict[PartitionKey, RepairReport], is_json: bool, *, is_done: bool) -> None:
    for (topic, partition), report in reports.items():
        if is_json:
            print(json.dumps(_to_dict(topic, partition, report, is_done=is_done)))
        elif not is_damaged(report):
            print(f"{topic}/{partition}: intact, {report.kept_count:,} batches")
        else:
            lost, is_all = _ranges(report.lost), "" if report.lost else " (nothing is lost)"
            print(f"{topic}/{partition}: {'repaired' if is_done else 'damaged'}{is_all}")
            print(f"  {report.kept_count:,} intact batches are kept")
            if report.lost:
                print(f"  offsets {'lost' if is_done else 'to be dropped'}: {lost}")
            tense = "set aside" if is_done else "to be set aside"
            print(f"  {bytes_text(report.damaged_bytes)} {tense}; files:")
            for file in report.files:
                print(f"    {file}")


def _ranges(lost: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{begin} to {end} (exclusive)" for begin, end in lost)


def _to_dict(topic: str, partition: int, report: RepairReport, *, is_done: bool) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "is_damaged": is_damaged(report),
        "is_repaired": is_done and is_damaged(report),
        "kept_batches": report.kept_count,
        "lost": [list(gap) for gap in report.lost],
        "damaged_bytes": report.damaged_bytes,
        "files": list(report.files),
    }
