"""Compact small files of the tables, expire old snapshots and delete orphan files. Exits with 1 if
a step fails."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from frazil.cli.connection import add_where, connected, is_folder
from frazil.cli.options import add_json, folder_config
from frazil.cli.terminal.wait import lake_lag, run_with_progress

if TYPE_CHECKING:
    from frazil.lake import Maintained

HELP = "Compact the tables, expire snapshots, delete orphan files"
FAILED = 1
MB = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add_json(parser, "print one JSON object per table")


def run(options: argparse.Namespace) -> int:
    if is_folder(options):
        done = run_with_progress(
            "maintain", lambda: _maintain_folder(options), None, is_quiet=options.json
        )
    else:
        node = connected(options)
        done = run_with_progress("maintain", node.maintain, lake_lag(node), is_quiet=options.json)
    if options.json:
        for table in done:
            print(json.dumps(table.to_dict()))
    else:
        _print_maintained(done)
    return FAILED if any(table.trouble for table in done) else 0


def _maintain_folder(options: argparse.Namespace) -> list[Maintained]:
    from frazil.folders import maintain_folder

    return maintain_folder(folder_config(options))


def _print_maintained(done: Sequence[Maintained]) -> None:
    heads = ("table", "files", "MB", "manifests", "snapshots", "removed", "orphans", "tags")
    lines = [heads]
    for table in done:
        tags = [*table.tags_made, *(f"dropped {tag}" for tag in table.tags_dropped)]
        lines.append(
            (
                table.table,
                f"{table.files_joined} -> {table.files_made}" if table.files_joined else "-",
                f"{table.bytes_joined / MB:.1f} -> {table.bytes_made / MB:.1f}"
                if table.files_joined
                else "-",
                f"{table.manifests_joined} merged" if table.manifests_joined else "-",
                f"{table.snapshots_expired} expired" if table.snapshots_expired else "-",
                f"{table.files_removed} files" if table.files_removed else "-",
                f"{table.orphans_removed} files" if table.orphans_removed else "-",
                ", ".join(tags) or "-",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        row = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join(row).rstrip())
    for table in done:
        for trouble in table.trouble:
            print(f"frazil: {table.table}: {trouble}", file=sys.stderr)
