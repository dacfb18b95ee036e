"""Look through the log of a data folder for damage, and set damaged bytes aside so that it opens
again. Every whole batch is kept. Copy the folder first; no node may have it now."""

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

HELP = "look for damage in a log, and set damaged bytes aside"
NOT_DONE = 1

Place = tuple[str, int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_data(parser, "the folder, which no node may use now")
    add = parser.add_argument
    add("--topic", metavar="NAME", help="only this one; without, all")
    add("--partition", type=int, metavar="N", help="only this one of --topic; without, all")
    add(
        "--floor",
        type=int,
        default=0,
        metavar="OFFSET",
        help="offsets below were promised to somebody outside, such as a table; with --partition",
    )
    add("--dry-run", action="store_true", help="only say what would be done")
    add("--yes", action="store_true", help="do not ask before it is done")
    add_json(parser, "one line of JSON per partition")


def run(options: argparse.Namespace) -> int:
    """Look, ask, do. 1 when damage is left."""
    config = checked_folder(options)
    if options.partition is not None and options.topic is None:
        raise Malformed("--partition needs --topic")
    if options.floor and options.partition is None:
        raise Malformed("--floor needs --topic and --partition")
    places = _places(config, options)
    found = {place: _repair(config, place, options, is_dry_run=True) for place in places}
    damaged = {place: done for place, done in found.items() if is_damaged(done)}
    if options.dry_run or not damaged:
        _say(found, options.json, is_done=False)
        return NOT_DONE if damaged else 0
    if not options.json:
        _say(found, options.json, is_done=False)
    if not confirm("Give up what is lost, and keep the rest?", is_sure=options.yes):
        return NOT_DONE
    done = {place: _repair(config, place, options, is_dry_run=False) for place in damaged}
    _say({**found, **done} if options.json else done, options.json, is_done=True)
    return 0


def is_damaged(done: RepairReport) -> bool:
    """Is there anything to do?"""
    return bool(done.lost or done.files or done.damaged_bytes)


def _places(config: Config, options: argparse.Namespace) -> list[Place]:
    from frazil.disk import RealDisk
    from frazil.log import partition_count, topic_names

    disk = RealDisk(config.data)
    everything = {name: partition_count(disk, name) for name in topic_names(disk)}
    if options.topic is None:
        return [(topic, part) for topic, count in everything.items() for part in range(count)]
    if options.partition is not None:
        return [(options.topic, options.partition)]
    return [(options.topic, part) for part in range(everything.get(options.topic, 1))]


def _repair(
    config: Config, place: Place, options: argparse.Namespace, *, is_dry_run: bool
) -> RepairReport:
    from frazil.disk import RealDisk
    from frazil.log import repair_partition
    from frazil.model import SystemClock, SystemRand

    return repair_partition(
        RealDisk(config.data),
        *place,
        config.log,
        rand=SystemRand(),
        now_ms=SystemClock().wall_ms(),
        floor=options.floor,
        is_dry_run=is_dry_run,
    )


def _say(found: dict[Place, RepairReport], is_json: bool, *, is_done: bool) -> None:
    for (topic, partition), done in found.items():
        if is_json:
            print(json.dumps(_facts(topic, partition, done, is_done=is_done)))
        elif not is_damaged(done):
            print(f"{topic}/{partition}: whole, {done.kept_count:,} batches")
        else:
            lost, is_all = _ranges(done.lost), "" if done.lost else " (nothing is lost)"
            print(f"{topic}/{partition}: {'repaired' if is_done else 'damaged'}{is_all}")
            print(f"  {done.kept_count:,} whole batches are kept")
            if done.lost:
                print(f"  offsets {'lost' if is_done else 'that would be given up'}: {lost}")
            aside = "set aside" if is_done else "to be set aside"
            print(f"  {bytes_text(done.damaged_bytes)} {aside}; files:")
            for file in done.files:
                print(f"    {file}")


def _ranges(lost: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{begin} up to {end}" for begin, end in lost)


def _facts(topic: str, partition: int, done: RepairReport, *, is_done: bool) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "is_damaged": is_damaged(done),
        "is_repaired": is_done and is_damaged(done),
        "kept_batches": done.kept_count,
        "lost": [list(gap) for gap in done.lost],
        "damaged_bytes": done.damaged_bytes,
        "files": list(done.files),
    }
