"""Make a node have the definitions of a folder: stages, external tables, views and pipes, as
`CREATE` statements in files that end with .sql. Prints what changes, then sends the statements one
after the other. Everything is read and checked first; if a statement fails, those before it stay,
and the same command goes on from there. Keyed tables are created if they do not exist; one that
exists with other columns is an error, and none is dropped."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.connection import add_where, opened
from frazil.cli.options import add_json
from frazil.cli.terminal.colors import DIM, GREEN, RED, Colors
from frazil.cli.terminal.text_width import safe

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.definitions import DefinitionChange, DefinitionKey
    from frazil.embedded import Embedded

HELP = "Make a node have the definitions of a folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", metavar="DIR", help="folder with files that end with .sql, also in its folders")
    add("--prune", action="store_true", help="drop definitions that the folder does not have")
    add("--dry-run", action="store_true", help="only print what would change")
    add_where(parser)
    add_json(parser, "print one JSON object")


def run(options: argparse.Namespace) -> int:
    from frazil.definitions import changes_to, definition_files, wanted_definitions

    wanted = wanted_definitions(definition_files(Path(options.folder)))
    with opened(options) as node:
        has_tables = any(kind == "table" for kind, _ in wanted)
        changes = changes_to(wanted, _existing(node, has_tables), prune=options.prune)
        for change in changes:
            if not options.json:
                _print(change)
            if not options.dry_run:
                with node.execute(change.statement) as result:
                    result.fetchall()
    if options.json:
        steps = [{"action": c.action, "kind": c.kind, "name": c.name} for c in changes]
        print(json.dumps({"changes": steps, "is_applied": not options.dry_run}))
    elif not changes:
        print(f"Nothing to change: {len(wanted)} definitions are as in {options.folder}.")
    else:
        word = "would change" if options.dry_run else "changed"
        print(f"{len(changes)} of {len(wanted)} definitions {word}.")
    return 0


def _existing(node: Embedded | Client, has_tables: bool) -> dict[DefinitionKey, str]:
    """Return the texts that the node has. One that it cannot read is replaced."""
    with node.execute("SHOW DEFINITIONS") as result:
        rows = result.arrow().to_pylist()
    found = {(row["kind"].replace(" ", "_"), row["name"]): row["definition"] for row in rows}
    if has_tables:
        with node.execute("SHOW KEYED TABLES") as result:
            rows = result.arrow().to_pylist()
        found |= {("table", row["name"]): row["definition"] for row in rows}
    return found


def _print(change: DefinitionChange) -> None:
    paint = Colors.of(sys.stdout)
    print(safe(change.title))
    for line in change.diff():
        color = {"+": GREEN, "-": RED}.get(line[:1], DIM)
        print("  " + paint(safe(line), color))
