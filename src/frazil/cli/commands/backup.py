"""Back up a data folder, also while a node runs on it. Everything acknowledged before the backup
began is in it once: log, tables, dashboards, progress of subscribers and readers. The hot tier is
not; it is rebuilt. Files of tables are hard links where possible."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.cli.options import add_config, add_data, add_json, folder_config
from frazil.cli.terminal.units import bytes_text, duration_text
from frazil.cli.terminal.wait import run_with_progress

if TYPE_CHECKING:
    from frazil.backup import CreatedBackup

HELP = "Back up a data folder, also while a node runs on it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="DIR", help="new folder for the backup")
    add_config(parser)
    add_data(parser, "data folder to back up")
    add_json(parser, "print one JSON object")


def run(options: argparse.Namespace) -> int:
    from frazil.model import SystemClock

    clock = SystemClock()
    begin_ns = clock.monotonic_ns()
    created = run_with_progress("backup", lambda: _create(options), None, is_quiet=options.json)
    took_ns = clock.monotonic_ns() - begin_ns
    if options.json:
        print(json.dumps(_to_dict(created)))
    else:
        _print(created, took_ns)
    return 0


def _create(options: argparse.Namespace) -> CreatedBackup:
    from frazil.backup import create_backup
    from frazil.model import SystemClock, SystemRand

    config = folder_config(options)
    return create_backup(
        Path(config.data),
        Path(options.target),
        config.lake,
        clock=SystemClock(),
        rand=SystemRand(),
    )


def _print(created: CreatedBackup, took_ns: int) -> None:
    manifest, linked = created.manifest, created.linked_bytes
    sizes = f"{bytes_text(manifest.size_bytes - linked)} copied, {bytes_text(linked)} linked"
    print(f"{created.path}: {len(manifest.files):,} files, {sizes}, {duration_text(took_ns)}")
    for each in manifest.partitions:
        span = f"{each.start_offset:,} to {each.end_offset:,}"
        print(f"  {each.topic}/{each.partition}: offsets {span} (exclusive)")
    print(f"  tables: {', '.join(table.name for table in manifest.tables) or 'none'}")


def _to_dict(created: CreatedBackup) -> dict[str, Any]:
    manifest = created.manifest
    return {
        "path": created.path,
        "files": len(manifest.files),
        "copied_bytes": manifest.size_bytes - created.linked_bytes,
        "linked_bytes": created.linked_bytes,
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "start_offset": each.start_offset,
                "end_offset": each.end_offset,
            }
            for each in manifest.partitions
        ],
        "tables": [
            {"name": each.name, "snapshot_id": each.snapshot_id} for each in manifest.tables
        ],
    }
