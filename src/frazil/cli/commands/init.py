"""Write a commented frazil.toml: every setting with its default and description."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from frazil.cli.options import add_json

HELP = "Write a frazil.toml with every setting and its default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        default="frazil.toml",
        help="file to write (frazil.toml)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_json(parser, "print one JSON object")


def run(options: argparse.Namespace) -> int:
    from frazil.config import settings, template

    path = Path(options.config)
    write(path, template(), is_forced=options.force)
    if options.json:
        print(json.dumps({"file": str(path.absolute()), "settings": len(settings())}))
    else:
        print(f"Wrote {path} with {len(settings())} settings, all commented out.")
    return 0


def write(path: Path, text: str, *, is_forced: bool) -> None:
    """Write the file atomically. An existing one is kept unless `is_forced`."""
    from frazil.disk import RealDisk
    from frazil.errors import Malformed

    if path.exists() and not is_forced:
        raise Malformed(f"{path} exists; name another with --config, or overwrite it with --force")
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
