"""Restore a data folder from a backup, which is verified and not changed. The original may still
be in use: the restored folder is independent of it. Start a node on the new folder with
`frazil up --data DIR`."""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.options import add_json
from frazil.cli.terminal.units import bytes_text
from frazil.cli.terminal.wait import run_with_progress
from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.backup import BackupManifest

HELP = "Restore a data folder from a backup"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("backup", metavar="BACKUP", help="folder that `frazil backup` wrote")
    add("--data", metavar="DIR", help="new or empty folder to restore to")
    add("--dry-run", action="store_true", help="only verify the backup")
    add_json(parser, "print one JSON object")


def run(options: argparse.Namespace) -> int:
    if options.dry_run == (options.data is not None):
        raise Malformed("name the new data folder with --data, or only verify with --dry-run")
    manifest = run_with_progress(
        "verify" if options.dry_run else "restore",
        lambda: _restore(options),
        None,
        is_quiet=options.json,
    )
    created = datetime.datetime.fromtimestamp(manifest.created_ms / 1000, datetime.UTC)
    if options.json:
        found = {
            "backup": options.backup,
            "data": options.data,
            "created": created.isoformat(timespec="milliseconds"),
            "frazil_version": manifest.frazil_version,
            "files": len(manifest.files),
            "bytes": manifest.size_bytes,
        }
        print(json.dumps(found))
        return 0
    size = f"{len(manifest.files):,} files, {bytes_text(manifest.size_bytes)}"
    what = f"of {manifest.source}, {created:%Y-%m-%d %H:%M:%S} UTC"
    if options.dry_run:
        print(f"{options.backup}: intact, {size}; backup {what}")
    else:
        print(f"{options.data}: restored, {size}; backup {what}")
    return 0


def _restore(options: argparse.Namespace) -> BackupManifest:
    from frazil.backup import restore_backup, verify_backup

    if options.dry_run:
        return verify_backup(Path(options.backup))
    return restore_backup(Path(options.backup), Path(options.data))
