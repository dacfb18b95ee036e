"""Write a commented frazil.toml: every setting, its default, and what it is for."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from frazil.cli.options import add_json

HELP = "write a frazil.toml with every setting and its default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", default="frazil.toml", help="where to (frazil.toml)"
    )
    parser.add_argument("--force", action="store_true", help="also when the file is there already")
    add_json(parser, "say it in one line of JSON")


def run(options: argparse.Namespace) -> int:
    """Write the file. One that is there stays, unless forced."""
    from frazil.config import settings, template

    path = Path(options.config)
    write(path, template(), is_forced=options.force)
    if options.json:
        print(json.dumps({"file": str(path.absolute()), "settings": len(settings())}))
    else:
        print(f"{path} has {len(settings())} settings; none is set yet")
    return 0


def write(path: Path, text: str, *, is_forced: bool) -> None:
    """Write a new file, or in place of the old one at once."""
    from frazil.disk import RealDisk
    from frazil.errors import Malformed

    if path.exists() and not is_forced:
        raise Malformed(f"{path} is there already; name another with --config, or say --force")
    disk, temporary = RealDisk(path.parent), f"{path.name}.tmp"
    try:
        if temporary in disk.list(""):
            disk.unlink(temporary)
        file = disk.open(temporary, "create")
        try:
            file.append([text.encode()])
            file.sync()
        finally:
            file.close()
        disk.rename(temporary, path.name)
    except OSError as error:
        raise Malformed(f"{path} cannot be written: {error.strerror}") from None
